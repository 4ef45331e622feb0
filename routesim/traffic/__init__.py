"""Traffic in continuous time: the simulator, its engines, and the routers that send the vehicles."""
