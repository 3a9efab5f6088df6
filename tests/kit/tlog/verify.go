// Verify the files of a log with the libraries of Go's checksum database: verify DIRECTORY KEY.
//
// It exits with 0 if everything is right, with 3 and a line that begins with "refused: " if anything is not.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

// files are the tiles of a log. The library names them tile/8/LEVEL/..., the specification tile/LEVEL/...
type files string

func (directory files) Height() int { return height }

func (directory files) SaveTiles([]tlog.Tile, [][]byte) {}

func (directory files) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var contents [][]byte
	for _, tile := range tiles {
		content, err := directory.read(strings.Replace(tile.Path(), "tile/8/", "tile/", 1))
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	return contents, nil
}

func (directory files) read(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(directory), path))
}

// entries gives back the entries of the bundle with this number.
func (directory files) entries(number, size int64) ([][]byte, error) {
	width := size - number<<height
	if width > 1<<height {
		width = 1 << height
	}
	tile := tlog.Tile{H: height, L: 0, N: number, W: int(width)}
	content, err := directory.read(strings.Replace(tile.Path(), "tile/8/0/", "tile/entries/", 1))
	if err != nil {
		return nil, err
	}
	var entries [][]byte
	for len(content) >= 2 {
		length := int(binary.BigEndian.Uint16(content))
		if len(content) < 2+length {
			break
		}
		entries = append(entries, content[2:2+length])
		content = content[2+length:]
	}
	if len(content) > 0 || int64(len(entries)) != width {
		return nil, fmt.Errorf("bundle %d does not hold %d entries", number, width)
	}
	return entries, nil
}

func openCheckpoint(signed []byte, key note.Verifier) (tlog.Tree, error) {
	opened, err := note.Open(signed, note.VerifierList(key))
	if err != nil {
		return tlog.Tree{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != key.Name() {
		return tlog.Tree{}, errors.New("the note is not a checkpoint of the log")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return tlog.Tree{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return tlog.Tree{N: size, Hash: root}, err
}

// verifyProof verifies a proof file, and that its leaf is the one of the entry with its index.
func verifyProof(content []byte, directory files, key note.Verifier) error {
	proof, signed, _ := bytes.Cut(content, []byte("\n\n"))
	tree, err := openCheckpoint(signed, key)
	if err != nil {
		return err
	}
	var index int64 = -1
	var hashes tlog.RecordProof
	for _, line := range strings.Split(string(proof), "\n")[1:] {
		if strings.HasPrefix(line, "index ") {
			index, err = strconv.ParseInt(line[len("index "):], 10, 64)
		} else if !strings.HasPrefix(line, "extra ") {
			var hash tlog.Hash
			hash, err = tlog.ParseHash(line)
			hashes = append(hashes, hash)
		}
		if err != nil {
			return err
		}
	}
	if index < 0 || index >= tree.N {
		return fmt.Errorf("no leaf has the index %d", index)
	}
	entries, err := directory.entries(index>>height, tree.N)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(hashes, tree.N, tree.Hash, index, tlog.RecordHash(entries[index%(1<<height)]))
}

// verifyEntries verifies all tiles up to the root, and that each entry is the one of its leaf.
func verifyEntries(tree tlog.Tree, directory files) error {
	hashes := tlog.TileHashReader(tree, directory)
	for first := int64(0); first < tree.N; first += 1 << height {
		entries, err := directory.entries(first>>height, tree.N)
		if err != nil {
			return err
		}
		var places []int64
		for offset := range entries {
			places = append(places, tlog.StoredHashIndex(0, first+int64(offset)))
		}
		leaves, err := hashes.ReadHashes(places)
		if err != nil {
			return err
		}
		for offset, entry := range entries {
			if tlog.RecordHash(entry) != leaves[offset] {
				return fmt.Errorf("entry %d is not the one of its leaf", first+int64(offset))
			}
		}
	}
	return nil
}

func verify(directory files, vkey string) error {
	key, err := note.NewVerifier(vkey)
	if err != nil {
		return err
	}
	signed, err := directory.read("checkpoint")
	if err != nil {
		return err
	}
	tree, err := openCheckpoint(signed, key)
	if err != nil {
		return err
	}
	if signed, err := directory.read("old-checkpoint"); err == nil {
		old, err := openCheckpoint(signed, key)
		if err != nil {
			return err
		}
		proof, err := tlog.ProveTree(tree.N, old.N, tlog.TileHashReader(tree, directory))
		if err != nil {
			return err
		}
		if err := tlog.CheckTree(proof, tree.N, tree.Hash, old.N, old.Hash); err != nil {
			return err
		}
	}
	proofs, _ := filepath.Glob(filepath.Join(string(directory), "proofs", "*"))
	for _, path := range proofs {
		content, err := os.ReadFile(path)
		if err == nil {
			err = verifyProof(content, directory, key)
		}
		if err != nil {
			return err
		}
	}
	return verifyEntries(tree, directory)
}

func main() {
	if err := verify(files(os.Args[1]), os.Args[2]); err != nil {
		fmt.Println("refused:", err)
		os.Exit(3)
	}
}
