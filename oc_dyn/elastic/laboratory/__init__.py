"""Laws of control on robots as they are built: many runs over effects and seeds, and a table of them."""

from .table import EFFECTS, LaboratoryRow, LaboratoryTable, laboratory_table

__all__ = ["EFFECTS", "LaboratoryRow", "LaboratoryTable", "laboratory_table"]
