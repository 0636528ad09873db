"""Commands that only look: status, list, history, alarms, doctor."""
