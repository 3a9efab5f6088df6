"""Ask a witness for cosignatures with the client of aics-witness: `... URL KEY`. The input is what is asked for."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

import base64
import json
import sys

from aics_witness.feeder import WitnessClient, WitnessRejected

if __name__ == "__main__":
    client, answers = WitnessClient(*sys.argv[1:]), []
    for note, proofs in json.load(sys.stdin):
        hashes = {old_size: [base64.b64decode(hash) for hash in proof] for old_size, proof in proofs}
        try:
            answers.append(client.submit(note, lambda old_size, _, hashes=hashes: hashes[old_size]))
        except WitnessRejected as error:
            answers.append(f"refused: {error.status}")
    print(json.dumps(answers))
