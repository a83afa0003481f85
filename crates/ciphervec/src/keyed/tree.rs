//! Tree of hashes over the buckets of a table. Every bucket bears its path to one of at most 1,024 nodes, the *cap*, which
//! the description holds: who has the description can tell any other bucket from the right one.

use ciphervec_arith::parallel::*;

/// Bytes of a hash.
pub(super) const NODE_BYTES: usize = 32;
pub(super) type Node = [u8; NODE_BYTES];

/// Most nodes of a cap.
pub(super) const CAP: usize = 1024;
/// The longest path: no table has more than 2^22 buckets.
pub(super) const MAX_PATH: usize = 12;

/// Hashes between a bucket and the cap, of so many buckets.
pub(super) fn path_len(leaves: usize) -> usize {
    let most = leaves.checked_next_power_of_two().unwrap_or(usize::MAX);
    (most / CAP).max(1).ilog2() as usize
}

/// The fewest buckets whose paths are so long.
pub(super) fn least_leaves(path: usize) -> usize {
    if path == 0 { 1 } else { (CAP << (path - 1)) + 1 }
}

/// Nodes of the cap of so many buckets.
pub(super) fn cap_len(leaves: usize) -> usize {
    leaves.div_ceil(1 << path_len(leaves))
}

/// The hash of a bucket's slots, bound to table and place.
pub(super) fn leaf(name: &[u8; 16], bucket: usize, slots: &[u8]) -> Node {
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 keyed-bucket");
    hasher.update(name).update(&(bucket as u64).to_le_bytes()).update(slots);
    *hasher.finalize().as_bytes()
}

fn join(left: &Node, right: &Node) -> Node {
    let mut hasher = blake3::Hasher::new_derive_key("ciphervec v1 keyed-node");
    *hasher.update(left).update(right).finalize().as_bytes()
}

/// The node above 2^height leaves, of which those at the end may be missing, and the path of each that is there.
pub(super) fn above(leaves: &[Node], height: usize) -> (Node, Vec<Vec<Node>>) {
    let mut level = leaves.to_vec();
    level.resize(1 << height, [0; NODE_BYTES]);
    let mut paths = vec![Vec::with_capacity(height); leaves.len()];
    for step in 0..height {
        for (index, path) in paths.iter_mut().enumerate() {
            path.push(level[(index >> step) ^ 1]);
        }
        level = level.as_chunks().0.par_iter().map(|[left, right]| join(left, right)).collect();
    }
    (level[0], paths)
}

/// The node of the cap that a bucket's hash and path lead to.
pub(super) fn climb(leaf: Node, bucket: usize, path: &[u8]) -> Node {
    let nodes = path.as_chunks::<NODE_BYTES>().0.iter().enumerate();
    nodes.fold(leaf, |below, (step, beside)| match bucket >> step & 1 {
        0 => join(&below, beside),
        _ => join(beside, &below),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_cap_and_no_other_leaf_or_place_does() {
        for (height, count) in [(0, 1), (1, 2), (3, 8), (3, 5), (5, 17)] {
            let leaves: Vec<Node> =
                (0..count).map(|at| leaf(&[7; 16], at, &[at as u8; 9])).collect();
            let (top, paths) = above(&leaves, height);
            for (at, (node, path)) in leaves.iter().zip(&paths).enumerate() {
                let path = path.concat();
                assert_eq!(climb(*node, at, &path), top);
                assert_eq!(path.len(), height * NODE_BYTES);
                if height > 0 {
                    assert_ne!(climb(*node, at ^ 1, &path), top);
                }
                assert_ne!(climb(leaf(&[7; 16], at, &[at as u8; 8]), at, &path), top);
            }
        }
        assert_ne!(leaf(&[7; 16], 0, b"x"), leaf(&[8; 16], 0, b"x"));
        assert_ne!(leaf(&[7; 16], 0, b"x"), leaf(&[7; 16], 1, b"x"));
    }

    #[test]
    fn caps_have_a_thousand_nodes_at_most() {
        let sizes =
            [(1, 0, 1), (1024, 0, 1024), (1025, 1, 513), (2048, 1, 1024), (3 << 20, 12, 768)];
        for (leaves, path, cap) in sizes {
            assert_eq!((path_len(leaves), cap_len(leaves)), (path, cap), "{leaves}");
            assert!(least_leaves(path) <= leaves && path_len(least_leaves(path)) == path);
        }
    }
}
