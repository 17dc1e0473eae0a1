"""By Spark: for logs and histories that outgrow a machine, and for DataFrames."""
