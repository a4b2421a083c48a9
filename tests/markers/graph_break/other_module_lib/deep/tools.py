def clip(x):
#        ^ recompilation recompile-requires-grad
    top = x.max().item()
    #^^^^^^^^^^^^^^^^^^^ specialization specialize-value
    #     ^^^^^^^^^^^^^^ graph-break GB0124 ×4
    return x.clamp(max=top)
    #      ^ recompilation recompile-requires-grad
