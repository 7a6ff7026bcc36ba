"""Programs for other systems: a player of planned motions in C, FMUs, controllers in the shape of ros2_control."""
