# Training metrics to Weights & Biases: kibitz policy train ... --log-command "python3 examples/wandb_log.py"
import json, sys, wandb; run = wandb.init(project="kibitz")
for m in map(json.loads, sys.stdin): run.log({f"{m['kind']}/{k}": m[k] for k in m if k not in ("kind", "step")}, step=m["step"])
