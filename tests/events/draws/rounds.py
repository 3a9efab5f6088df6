"""Real rounds of the beacon, as its documents print them."""

ROUNDS = {
    42: "95a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a",
    657413: "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
}
"""The signature of each round, in hex."""

RANDOMNESS = {42: "8ada64ba", 657413: "fc1873a1"}
"""The beginning of the random value of each round, in hex."""
