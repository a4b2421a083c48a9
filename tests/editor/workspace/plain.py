print("no compiler here")
