"""Indentation by tabs, and a tab inside a line."""
import torch


@torch.compile
def f(x):
	y = x.sin()
	if y.shape[0]:
		print("tab",	y.shape)
		#^^^^^^^^^^^^^^^^^^^^ graph-break GB0059
	return y * y.max().item()
	#          ^^^^^^^^^^^^^^ graph-break GB0124


f(torch.ones(4))
