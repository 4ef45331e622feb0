"""Assignment: static flows of a demand, as user equilibrium or system optimum."""
