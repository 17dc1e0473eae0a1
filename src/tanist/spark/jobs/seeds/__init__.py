"""Seeds of the simulator as a Spark job: what is played (`lots`), the table (`table`), the tasks (`job`), and what the
table says (`summary`).
"""
