"""Columns behind letters of two, three and four bytes, and behind a combining accent."""
import torch


@torch.compile
def größe(maß):
    übung = maß.sin(); print("Größe:", übung.shape)
    #                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0059
    return übung


@torch.compile
def emoji(x):
    label = "🚀🔥"; n = x.sum().item()
    #                 ^^^^^^^^^^^^^^ graph-break GB0124
    return x * n


@torch.compile
def cjk(テンソル):
    和 = {"合計": テンソル.sum()}; 値 = 和["合計"].item()
    #                           ^^^^^^^^^^^^^^ graph-break GB0124
    return テンソル * 値


@torch.compile
def accents(x):
    note = "éé"; x = x + 1 if x.sum() > 0 else x - 1
    #                           ^^^^^^^^^^^ graph-break GB0170
    return x


for f in (größe, emoji, cjk, accents):
    f(torch.ones(4))
