"""The bench world: what runs beside one pinned torch."""
