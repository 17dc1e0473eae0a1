"""What must hold in a run, and the one who looks: each checker owns what it has seen."""
