"""Measurements: blasx beside its peers (compare), host overhead, tables and plots, tuning."""
