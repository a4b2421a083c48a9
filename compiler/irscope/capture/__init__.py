"""What is changed inside the script's process so that its compiles can be seen, and only for that long."""
