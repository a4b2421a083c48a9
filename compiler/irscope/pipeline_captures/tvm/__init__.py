"""What captures for TVM: Relax and its passes, TIR, and what is below."""
