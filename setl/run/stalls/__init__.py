"""Why a run stands still, found out beside it."""
