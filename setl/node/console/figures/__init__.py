"""Figures over time, for the charts."""
