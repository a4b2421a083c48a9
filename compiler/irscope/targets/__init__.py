"""The devices that code can be generated for, or whose times are estimated, wherever irscope itself runs."""
