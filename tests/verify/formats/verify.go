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

// files are those of a log. The library names tiles tile/8/LEVEL/..., the specification tile/LEVEL/...
type files string

func (directory files) read(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(directory), path))
}

// widthOf says how many hashes or entries of a level are in its tile or bundle with this number.
func widthOf(number, count int64) int {
	if left := count - number<<height; left < 1<<height {
		return int(left)
	}
	return 1 << height
}

// entries gives back the entries of the bundle with this number.
func (directory files) entries(number, size int64) ([][]byte, error) {
	tile := tlog.Tile{H: height, L: 0, N: number, W: widthOf(number, size)}
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
	if len(content) > 0 || len(entries) != tile.W {
		return nil, fmt.Errorf("bundle %d does not hold %d entries", number, tile.W)
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

// hashTree makes the tree of all entries, and verifies its root.
//
// TileHashReader would read the tiles, but does not verify all of them before x/mod 0.40 (CVE-2026-56865).
func hashTree(tree tlog.Tree, directory files) (tlog.HashReader, error) {
	var stored []tlog.Hash
	hashes := tlog.HashReaderFunc(func(places []int64) ([]tlog.Hash, error) {
		var found []tlog.Hash
		for _, place := range places {
			found = append(found, stored[place])
		}
		return found, nil
	})
	for first := int64(0); first < tree.N; first += 1 << height {
		entries, err := directory.entries(first>>height, tree.N)
		if err != nil {
			return nil, err
		}
		for offset, entry := range entries {
			more, err := tlog.StoredHashes(first+int64(offset), entry, hashes)
			if err != nil {
				return nil, err
			}
			stored = append(stored, more...)
		}
	}
	root, err := tlog.TreeHash(tree.N, hashes)
	if err == nil && root != tree.Hash {
		err = errors.New("the entries do not have the root of the checkpoint")
	}
	return hashes, err
}

// verifyTiles compares all tiles with the tree.
func verifyTiles(tree tlog.Tree, hashes tlog.HashReader, directory files) error {
	for level := 0; tree.N>>(height*level) > 0; level++ {
		width := tree.N >> (height * level)
		for number := int64(0); number<<height < width; number++ {
			tile := tlog.Tile{H: height, L: level, N: number, W: widthOf(number, width)}
			content, err := directory.read(strings.Replace(tile.Path(), "tile/8/", "tile/", 1))
			if err != nil {
				return err
			}
			expected, err := tlog.ReadTileData(tile, hashes)
			if err != nil {
				return err
			}
			if !bytes.Equal(content, expected) {
				return fmt.Errorf("%s does not hold the hashes of the tree", tile.Path())
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
	hashes, err := hashTree(tree, directory)
	if err != nil {
		return err
	}
	if signed, err := directory.read("old-checkpoint"); err == nil {
		old, err := openCheckpoint(signed, key)
		if err != nil {
			return err
		}
		proof, err := tlog.ProveTree(tree.N, old.N, hashes)
		if err != nil {
			return err
		}
		if err := tlog.CheckTree(proof, tree.N, tree.Hash, old.N, old.Hash); err != nil {
			return err
		}
	}
	return verifyTiles(tree, hashes, directory)
}

func main() {
	if err := verify(files(os.Args[1]), os.Args[2]); err != nil {
		fmt.Println("refused:", err)
		os.Exit(3)
	}
}
