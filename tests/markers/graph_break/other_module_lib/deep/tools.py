def clip(x):
#        ^ to +0:10 recompilation recompile-requires-grad
    top = x.max().item()
    #     ^^^^^^^^^^^^^^ graph-break GB0124 ×4
    return x.clamp(max=top)
    #      ^ to +0:12 recompilation recompile-requires-grad
