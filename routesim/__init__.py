"""routesim: traffic routing where a recommendation changes the traffic it was made for."""
