import torch
from transformers import BertConfig, BertModel
torch.manual_seed(0)
D='cuda' if torch.cuda.is_available() else 'cpu'
net = torch.compile(BertModel(BertConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024, vocab_size=1000)).eval().to(D))
with torch.no_grad():
    net(torch.ones(8, 128, dtype=torch.long, device=D))
