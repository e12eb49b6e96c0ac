"""Figures learnt from correct pages of many sites; no page and no text."""
