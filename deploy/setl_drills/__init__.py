"""Drills: faults rehearsed on real nodes and servers, each checked for what it may not break."""
