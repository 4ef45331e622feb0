"""The HTTP service: recommendations of a scenario's learner, observations back, and a page to click on."""
