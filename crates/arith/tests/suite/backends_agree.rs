//! Back-ends: every kernel on every one this processor has, bit for bit against portable: odd
//! sizes, edge values, random ones.

use ciphervec_arith::float_scan::scan_f32;
use ciphervec_arith::matmul::{
    scan_u24, scan_u24_batch, scan_u32, scan_u32_batch, scan_u64, scan_u64_batch,
};
use ciphervec_arith::ring::{STRIP, STRIP_BYTES, pack50, ring_scan_strip, unpack50};
use ciphervec_arith::wrapping::{
    NegacyclicRows, Unmasking, differences_u32, differences_u64, dots_u32, dots_u64,
    ternary_products,
};
use ciphervec_arith::{Backend, Modulus, NttTable, Stream, convert, ntt_primes, poly};
use proptest::prelude::*;

/// Runs `kernel` on every back-end and compares what it returns.
fn agree<T: PartialEq + std::fmt::Debug>(what: &str, kernel: impl Fn() -> T) {
    let expected = Backend::Portable.run(&kernel).expect("portable always runs");
    for backend in Backend::available() {
        let actual = backend.run(&kernel).expect("an available back-end");
        assert!(actual == expected, "{what}: {} differs from portable", backend.name());
    }
}

fn bytes(n: usize, stream: u64) -> Vec<u8> {
    let mut out = vec![0; n];
    Stream::new(&[3; 32], stream).fill(&mut out);
    out
}

fn residues(m: &Modulus, n: usize, stream: u64) -> Vec<u64> {
    let mut out = vec![0; n];
    Stream::new(&[4; 32], stream).uniform(m, &mut out);
    // The two ends of the range, somewhere inside.
    if n > 2 {
        out[n / 2] = m.value() - 1;
        out[n / 3] = 0;
    }
    out
}

fn words<T: From<i32> + Copy>(n: usize, stream: u64, edge: &[T]) -> Vec<T> {
    let raw = bytes(2 * n, stream);
    let mut out: Vec<T> =
        raw.as_chunks::<2>().0.iter().map(|&b| T::from(i32::from(i16::from_le_bytes(b)))).collect();
    for (x, &e) in out.iter_mut().zip(edge) {
        *x = e;
    }
    out
}

fn moduli() -> Vec<Modulus> {
    let ntt = ntt_primes(50, 4096, 2).expect("primes");
    [2, 3, 12289, 1 << 37, (1 << 50) - 1, (1 << 50) + 1, (1 << 61) - 1, (1 << 62) - 1]
        .into_iter()
        .chain(ntt)
        .map(|q| Modulus::new(q).expect("a modulus"))
        .collect()
}

/// Each word so often in a row.
fn repeated(words: &[u64], times: usize) -> Vec<u64> {
    words.iter().flat_map(|&word| std::iter::repeat_n(word, times)).collect()
}

#[test]
fn pointwise_arithmetic() {
    for m in moduli() {
        for n in [0, 1, 3, 7, 8, 9, 31, 64, 100] {
            let (a, b, c) = (residues(&m, n, 1), residues(&m, n, 2), residues(&m, n, 3));
            let [d, e, f] = [4, 5, 6].map(|seed| residues(&m, n + 1, seed));
            let what = format!("q = {} n = {n}", m.value());
            let on = |f: &dyn Fn(&mut Vec<u64>)| {
                agree(&what, || {
                    let mut x = a.clone();
                    f(&mut x);
                    assert!(x.iter().all(|&r| r < m.value()));
                    x
                });
            };
            on(&|x| poly::add_assign(x, &b, &m));
            on(&|x| poly::sub_assign(x, &b, &m));
            on(&|x| poly::neg_assign(x, &m));
            on(&|x| poly::mul(x, &b, &c, &m));
            on(&|x| poly::mul_assign(x, &b, &m));
            on(&|x| poly::mul_add_assign(x, &b, &c, &m));
            on(&|x| poly::scalar_mul_assign(x, u64::MAX - 5, &m));
            on(&|x| poly::sub_scale_assign(x, &b, &m.shoup(u64::MAX - 5), &m));
            for rotated in [None, Some(c.as_slice())] {
                agree(&what, || {
                    let (mut even, mut odd, mut low) = (a.clone(), b.clone(), c.clone());
                    let inverse = m.shoup(u64::MAX - 5);
                    poly::split([&mut even, &mut odd], &mut low, &b, &inverse, rotated, &c, &m);
                    (even, odd)
                });
            }
            for terms in [0, 1, 2, 9, 17, 40] {
                let left: Vec<&[u64]> =
                    (0..terms).map(|j| [&a, &b, &c][j % 3].as_slice()).collect();
                let right: Vec<&[u64]> = (0..terms).map(|j| [&b, &c][j % 2].as_slice()).collect();
                on(&|x| poly::dot(x, &left, &right, &m));
                for gap in [1, 2, 4, 8, 24, 32] {
                    let words = n.div_ceil(gap).max(1);
                    let right: Vec<&[u64]> =
                        (0..terms).map(|j| &[&e, &d][j % 2][..words]).collect();
                    agree(&format!("{what} gap = {gap}"), || {
                        let long: Vec<Vec<u64>> = right.iter().map(|p| repeated(p, gap)).collect();
                        let wide: Vec<u64> = f.iter().copied().cycle().take(words * gap).collect();
                        let left = vec![wide.as_slice(); terms];
                        let (mut x, mut expected) = (wide.clone(), wide.clone());
                        poly::dot_repeated(&mut x, &left, &right, &m);
                        poly::dot(&mut expected, &left, &views(&long), &m);
                        assert_eq!(x, expected);
                        x
                    });
                }
            }
        }
    }
}

#[test]
fn centred_residues_of_another_modulus() {
    let sources =
        ntt_primes(50, 4096, 1).expect("primes").into_iter().chain([3, 12289, (1 << 50) - 1]);
    for from in sources.map(|q| Modulus::new(q).expect("a modulus")) {
        for m in moduli() {
            for n in [0, 1, 7, 8, 9, 100, 1001] {
                let (a, mut b) = (residues(&m, n, 1), residues(&from, n, 2));
                let edges = [from.value() / 2, from.value() / 2 + 1, 0, from.value() - 1];
                b.iter_mut().zip(edges).for_each(|(b, edge)| *b = edge);
                let s = m.shoup(m.value() - 1);
                let centred: Vec<u64> =
                    b.iter().map(|&x| m.from_i64(from.to_centered(x))).collect();
                agree(&format!("{} to {}, {n}", from.value(), m.value()), || {
                    let (mut x, mut z) = (a.clone(), vec![9; n]);
                    poly::sub_centred_scale_assign(&mut x, &b, &from, &s, &m);
                    convert::recentre_to(&mut z, &b, &from, &m);
                    assert_eq!(z, centred);
                    // The factor is -1.
                    assert!(x.iter().zip(&a).zip(&centred).all(|((x, a), c)| *x == m.sub(*c, *a)));
                    x
                });
            }
        }
    }
}

/// Permutations of `n` places: none, reversed, one that moves whole blocks of eight as
/// automorphisms do, a mixed one.
fn permutations(n: usize) -> Vec<Vec<u32>> {
    let blocks =
        |i: usize| if n.is_multiple_of(8) { (n - 8 - i / 8 * 8) + (3 * i + 5) % 8 } else { i };
    let mixed = |i: usize| if i + 1 < n { i ^ 1 } else { i };
    vec![
        (0..n as u32).collect(),
        (0..n as u32).rev().collect(),
        (0..n).map(|i| blocks(i) as u32).collect(),
        (0..n).map(|i| mixed(i).min(n - 1) as u32).collect(),
    ]
}

fn views(polys: &[Vec<u64>]) -> Vec<&[u64]> {
    polys.iter().map(Vec::as_slice).collect()
}

#[test]
fn key_switch_sums_and_permutations() {
    for m in moduli() {
        for n in [0, 1, 8, 9, 32, 100, 264] {
            for terms in [0, 1, 3, 15, 16, 40] {
                let list = |stream: u64| -> Vec<Vec<u64>> {
                    (0..terms).map(|j| residues(&m, n, stream + j)).collect()
                };
                let (mut d, mut k0, k1) = (list(100), list(200), list(300));
                // One sum as large as it can be.
                let first = d.iter_mut().chain(&mut k0).filter_map(|p| p.first_mut());
                first.for_each(|x| *x = m.value() - 1);
                let (digits, keys0, keys1) = (views(&d), views(&k0), views(&k1));
                let what = format!("q = {} n = {n} terms = {terms}", m.value());
                agree(&what, || {
                    let (mut x, mut y) = (vec![7; n], vec![8; n]);
                    poly::dot_pair(&mut x, &mut y, &digits, &keys0, &keys1, &m);
                    let (mut expected_x, mut expected_y) = (vec![0; n], vec![0; n]);
                    poly::dot(&mut expected_x, &digits, &keys0, &m);
                    poly::dot(&mut expected_y, &digits, &keys1, &m);
                    assert_eq!((&x, &y), (&expected_x, &expected_y));
                    (x, y)
                });
                for perm in permutations(n) {
                    agree(&what, || {
                        let mut permuted = d.clone();
                        for (out, a) in permuted.iter_mut().zip(&d) {
                            poly::permute(out, a, &perm);
                            assert!(out.iter().zip(&perm).all(|(&x, &i)| x == a[i as usize]));
                        }
                        let (mut x, mut y) = (vec![7; n], vec![8; n]);
                        poly::dot_pair(&mut x, &mut y, &views(&permuted), &keys0, &keys1, &m);
                        let (mut u, mut v) = (vec![7; n], vec![8; n]);
                        poly::dot_pair_permuted(&mut u, &mut v, &digits, &keys0, &keys1, &perm, &m);
                        assert_eq!((&x, &y), (&u, &v));
                        (x, y)
                    });
                }
            }
        }
    }
}

#[test]
#[cfg(panic = "unwind")]
fn a_permutation_out_of_range_is_refused() {
    let m = moduli()[9];
    let a = residues(&m, 64, 1);
    for place in [0, 5, 63] {
        for bad in [64, 71, u32::MAX] {
            let mut perm: Vec<u32> = (0..64).collect();
            perm[place] = bad;
            for backend in Backend::available() {
                let ran = std::panic::catch_unwind(|| {
                    let mut out = vec![0; 64];
                    backend.run(|| poly::permute(&mut out, &a, &perm))
                });
                assert!(ran.is_err(), "{}: {bad} at {place}", backend.name());
            }
        }
    }
}

#[test]
fn dot_with_more_terms_than_an_accumulator_holds() {
    let m = Modulus::new(ntt_primes(50, 4096, 1).expect("prime")[0]).expect("modulus");
    let top = vec![m.value() - 1; 16];
    let list = vec![top.as_slice(); 9000];
    agree("9000 terms", || {
        let mut out = vec![0; 16];
        poly::dot(&mut out, &list, &list, &m);
        // (q - 1)^2 = 1, so the sum counts the terms.
        assert_eq!(out, vec![9000; 16]);
        out
    });
}

#[test]
fn single_scans() {
    for rows in [0, 1, 5, 63, 64, 65, 127, 128, 200] {
        for dim in [0, 1, 2, 7, 8, 9, 64, 129] {
            let narrow = words(dim, 11, &[i32::MIN, i32::MAX, -1, 0]);
            let wide = words(dim, 12, &[i64::MIN, i64::MAX, -1, 0]);
            agree(&format!("u32 {rows} x {dim}"), || {
                let mut out = vec![7; rows];
                scan_u32(&bytes(4 * rows * dim, 13), rows, dim, &narrow, &mut out);
                out
            });
            agree(&format!("u24 {rows} x {dim}"), || {
                let mut out = vec![7; rows];
                scan_u24(&bytes(3 * rows * dim, 14), rows, dim, &narrow, &mut out);
                out
            });
            agree(&format!("u64 {rows} x {dim}"), || {
                let mut out = vec![7; rows];
                scan_u64(&bytes(8 * rows * dim, 15), rows, dim, &wide, &mut out);
                out
            });
        }
    }
}

/// Every sum of the definition, in its order, with numbers of all sizes.
#[test]
fn float_scans_are_those_of_the_definition() {
    let floats = |n: usize, stream: u64| -> Vec<f32> {
        let edges = [0.0, -0.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::MIN, 1.0];
        let word = |word: &[u8; 4]| f32::from_bits(u32::from_le_bytes(*word) & 0xbfff_ffff);
        let random = bytes(4 * n, stream);
        let (random, edges) = (random.as_chunks().0.iter().map(word), edges.into_iter().cycle());
        random.zip(edges).enumerate().map(|(i, (x, e))| if i % 5 == 4 { e } else { x }).collect()
    };
    for rows in [0, 1, 3, 4, 7, 8, 9, 63, 64, 65, 130] {
        for dim in [1, 2, 7, 8, 9, 16, 65] {
            let data = floats(rows * dim, 51);
            for count in [0, 1, 2, 3, 4, 5, 7, 9] {
                let queries = floats(count * dim, 52);
                let mut expected = Vec::new();
                for query in queries.chunks_exact(dim) {
                    for row in data.chunks_exact(dim) {
                        let (mut sums, mut rest) = ([0.0; 8], -0.0);
                        for (i, (&x, &y)) in row.iter().zip(query).enumerate() {
                            let sum = if i < dim / 8 * 8 { &mut sums[i % 8] } else { &mut rest };
                            *sum += f64::from(x) * f64::from(y);
                        }
                        let total = sums.into_iter().fold(-0.0, |total, sum| total + sum) + rest;
                        expected.push((total as f32).to_le_bytes());
                    }
                }
                let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
                agree(&format!("floats {rows} x {dim} x {count}"), || {
                    let mut out = vec![[7; 4]; count * rows];
                    scan_f32(&bytes, rows, dim, &queries, &mut out);
                    assert_eq!(out, expected);
                    out
                });
            }
        }
    }
}

#[test]
fn batch_scans_equal_single_ones() {
    for (rows, dim, nq) in [(1, 3, 2), (64, 5, 1), (130, 33, 7), (200, 64, 13), (70, 2100, 5)] {
        let narrow = words(nq * dim, 21, &[i32::MIN, i32::MAX, -1]);
        let wide = words(nq * dim, 22, &[i64::MIN, i64::MAX, -1]);
        let (d32, d24, d64) =
            (bytes(4 * rows * dim, 23), bytes(3 * rows * dim, 24), bytes(8 * rows * dim, 25));
        let run = || {
            let (mut a, mut b, mut c) =
                (vec![9; nq * rows], vec![9; nq * rows], vec![9; nq * rows]);
            scan_u32_batch(&d32, rows, dim, &narrow, &mut a);
            scan_u24_batch(&d24, rows, dim, &narrow, &mut b);
            scan_u64_batch(&d64, rows, dim, &wide, &mut c);
            (a, b, c)
        };
        agree(&format!("batch {rows} x {dim} x {nq}"), run);
        let (a, b, c) = run();
        for q in 0..nq {
            let (mut x, mut y, mut z) = (vec![0; rows], vec![0; rows], vec![0; rows]);
            scan_u32(&d32, rows, dim, &narrow[q * dim..(q + 1) * dim], &mut x);
            scan_u24(&d24, rows, dim, &narrow[q * dim..(q + 1) * dim], &mut y);
            scan_u64(&d64, rows, dim, &wide[q * dim..(q + 1) * dim], &mut z);
            assert_eq!(x, a[q * rows..(q + 1) * rows]);
            assert_eq!(y, b[q * rows..(q + 1) * rows]);
            assert_eq!(z, c[q * rows..(q + 1) * rows]);
        }
    }
}

#[test]
fn wrapping_sums_are_those_of_the_definition() {
    for n in [1usize, 7, 63, 64, 65, 300, 2048] {
        let x: Vec<u64> = words(n, 31, &[u64::MAX as i64, i64::MIN])
            .iter()
            .map(|word: &i64| *word as u64)
            .collect();
        let weights: Vec<u64> =
            words(5 * n, 32, &[-1, i64::MIN, i64::MAX]).iter().map(|word| *word as u64).collect();
        let narrow = |words: &[u64]| words.iter().map(|word| *word as u32).collect::<Vec<u32>>();
        let sum = |j: usize| {
            let pairs = x.iter().zip(&weights[j * n..]);
            pairs.fold(3u64, |sum, (x, weight)| sum.wrapping_add(x.wrapping_mul(*weight)))
        };
        let expected: Vec<u64> = (0..5).map(sum).collect();
        agree(&format!("sums of {n}"), || {
            let (mut wide, mut short) = (vec![3; 5], vec![3; 5]);
            dots_u64(&x, &weights, &mut wide);
            dots_u32(&narrow(&x), &narrow(&weights), &mut short);
            assert_eq!(wide, expected);
            assert_eq!(short, narrow(&expected));
            (wide, short)
        });
    }
}

#[test]
fn masks_are_taken_off_words() {
    for n in [0usize, 1, 7, 8, 33, 2048] {
        let wide: Vec<u64> =
            words(n, 34, &[-1, i64::MIN]).iter().map(|word| *word as u64).collect();
        let masks: Vec<u64> = words(n + 1, 35, &[0, -1]).iter().map(|word| *word as u64).collect();
        let narrow: Vec<u32> = wide.iter().map(|word| *word as u32).collect();
        for (dropped, bits) in [(5, 37), (8, 32), (0, 64)] {
            let by = Unmasking { dropped, bits, unit: 0.375 };
            let each = |words: &[u64]| -> Vec<i64> {
                let half = 1i128 << (bits - 1);
                let pairs = words.iter().zip(&masks);
                let all =
                    pairs.map(|(word, mask)| (i128::from(*word) << dropped) - i128::from(*mask));
                all.map(|sum| ((sum + half).rem_euclid(2 * half) - half) as i64).collect()
            };
            let long: Vec<u64> = narrow.iter().map(|word| u64::from(*word)).collect();
            let expected = (each(&long), each(&wide));
            agree(&format!("{n} words less masks modulo 2^{bits}"), || {
                let (mut short, mut full) = (vec![1; n], vec![1; n]);
                let mut scaled = vec![0.0; n];
                let of = |sums: &[i64]| {
                    let least = sums.iter().copied().min().unwrap_or(i64::MAX);
                    (least, sums.iter().copied().max().unwrap_or(i64::MIN))
                };
                let extent = differences_u32(&narrow, &masks, by, &mut short, &mut scaled);
                assert_eq!(extent, of(&expected.0));
                assert!(scaled.iter().zip(&short).all(|(s, x)| *s == *x as f64 * 0.375));
                let extent = differences_u64(&wide, &masks, by, &mut full, &mut scaled);
                assert_eq!(extent, of(&expected.1));
                assert!(scaled.iter().zip(&full).all(|(s, x)| *s == *x as f64 * 0.375));
                assert_eq!((&short, &full), (&expected.0, &expected.1));
                (short, full)
            });
        }
    }
}

#[test]
fn rows_of_a_ternary_secret_give_coefficients_of_the_product() {
    for (n, polys) in [(1usize, 3usize), (2, 4), (32, 4), (64, 8), (100, 4), (2048, 3), (2048, 8)] {
        let mut secret = vec![0i8; n];
        Stream::new(&[5; 32], 1).ternary(&mut secret);
        // The largest sums there are.
        let (random, most) = (bytes(polys * n, 33), vec![255; polys * n]);
        let places = [0, n / 3, n - 1];
        for polynomials in [random, most] {
            let product = |poly: &[u8], place: usize| {
                (0..n).fold(0u8, |sum, j| {
                    let s = if j <= place { secret[place - j] } else { -secret[n + place - j] };
                    sum.wrapping_add(poly[j].wrapping_mul(s as u8))
                })
            };
            let each = |place: usize| polynomials.chunks_exact(n).map(move |p| product(p, place));
            let expected: Vec<u8> = places.iter().flat_map(|place| each(*place)).collect();
            agree(&format!("coefficients of {polys} products of {n}"), || {
                let laid = NegacyclicRows::new(&secret);
                let rows = places.map(|place| laid.row(place));
                let mut out = vec![9; polys * places.len()];
                ternary_products(&polynomials, &rows, &mut out);
                assert_eq!(out, expected);
                out
            });
        }
    }
    // All of one sign, so that nothing cancels.
    let (secret, polynomials) = (vec![-1i8; 2048], vec![255u8; 4 * 2048]);
    agree("a secret of minus ones", || {
        let laid = NegacyclicRows::new(&secret);
        let mut out = vec![0; 4];
        ternary_products(&polynomials, &[laid.row(2047)], &mut out);
        assert_eq!(out, [0; 4]);
        ternary_products(&polynomials, &[laid.row(2046)], &mut out);
        assert_eq!(out, [254; 4]);
        out
    });
}

#[test]
fn packed_residues() {
    for n in [0, 8, 32, 40, 96, 136] {
        let mut coeffs: Vec<u64> =
            (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 14).collect();
        if n > 0 {
            coeffs[n - 1] = (1 << 50) - 1;
        }
        let mut packed = vec![0; n / 8 * 50];
        pack50(&coeffs, &mut packed);
        agree(&format!("unpack {n}"), || {
            let mut out = vec![1; n];
            unpack50(&packed, &mut out);
            assert_eq!(out, coeffs);
            out
        });
    }
}

#[test]
fn ring_scans() {
    let m = Modulus::new(ntt_primes(50, 4096, 1).expect("prime")[0]).expect("modulus");
    for (blocks, nodes, count) in [
        (0, 3, 1),
        (2, 0, 1),
        (1, 1, 1),
        (2, 5, 2),
        (3, 128, 9),
        (4, 7, 1),
        (11, 16, 40),
        (1, 4096, 1),
    ] {
        let mut data = bytes(blocks * nodes * STRIP_BYTES, 31);
        // The last block holds the largest packed value throughout: the sums then are as large as
        // they can be.
        let start = data.len() - if blocks > 0 { nodes * STRIP_BYTES } else { 0 };
        data[start..].fill(0xff);
        let queries: Vec<Vec<u64>> =
            (0..count).map(|k| residues(&m, nodes * 2 * STRIP, 32 + k as u64)).collect();
        ring_scan_agrees(&data, (blocks, nodes), &queries, &m);
    }
}

/// Around the numbers of nodes and blocks that kernels take at once, with data and words that make
/// every partial sum as large, or as negative, as it can be.
#[test]
fn ring_scans_of_extreme_residues() {
    let largest = (1 << 50) - 1;
    let moduli = [2, 3, (1 << 49) + 1, (1 << 50) - 27, largest].map(Modulus::new);
    for m in moduli.map(|m| m.expect("a modulus")) {
        let q = m.value();
        // Halves of 25 bits that are all ones, one bit, or the ends of centred ranges.
        let words = [q - 1, q / 2, q / 2 + 1, 0, 1 << 24, (1 << 49) - (1 << 24), 1 << 25];
        let values = [largest, 0, (1 << 25) - 1, largest - ((1 << 25) - 1), 1 << 49, 1];
        for (blocks, nodes) in [(1, 22), (5, 23), (4, 29), (3, 44), (2, 45), (6, 128), (1, 1000)] {
            let queries: Vec<Vec<u64>> = words
                .map(|word| vec![word % q; nodes * 2 * STRIP])
                .into_iter()
                .chain([(0..nodes * 2 * STRIP).map(|i| words[i % words.len()] % q).collect()])
                .collect();
            for value in values {
                let mut data = vec![0; blocks * nodes * STRIP_BYTES];
                pack50(&vec![value; blocks * nodes * STRIP], &mut data);
                ring_scan_agrees(&data, (blocks, nodes), &queries, &m);
            }
        }
    }
}

fn ring_scan_agrees(
    data: &[u8],
    (blocks, nodes): (usize, usize),
    queries: &[Vec<u64>],
    m: &Modulus,
) {
    let views: Vec<&[u64]> = queries.iter().map(Vec::as_slice).collect();
    agree(&format!("ring {blocks} x {nodes} x {} mod {}", views.len(), m.value()), || {
        let n = views.len() * blocks * STRIP;
        let (mut u, mut v) = (vec![1; n], vec![1; n]);
        ring_scan_strip(data, blocks, nodes, &views, m, &mut u, &mut v);
        assert!(u.iter().chain(&v).all(|&x| x < m.value()));
        (u, v)
    });
}

#[test]
fn samplers() {
    for n in [0, 1, 7, 8, 9, 1023, 1024, 5000] {
        for m in moduli() {
            agree(&format!("uniform {n} mod {}", m.value()), || {
                let mut out = vec![0; n];
                let mut stream = Stream::new(&[9; 32], 1);
                stream.uniform(&m, &mut out);
                let mut after = [0; 8];
                stream.fill(&mut after);
                (out, after)
            });
        }
        agree(&format!("gaussian {n}"), || {
            let mut out = vec![0; n];
            Stream::new(&[9; 32], 2).gaussian(&mut out);
            out
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn transforms(seed: u64, log in 10u32..=13, bits in 20u32..=50) {
        let n = 1usize << log;
        let table = NttTable::new(n, ntt_primes(bits, n, 1).expect("prime")[0]).expect("table");
        let input = residues(table.modulus(), n, seed);
        agree("forward", || { let mut x = input.clone(); table.forward(&mut x); x });
        agree("inverse", || { let mut x = input.clone(); table.inverse(&mut x); x });
    }

    #[test]
    fn products(q in 2u64..1 << 50, seed: u64, n in 0usize..70) {
        let m = Modulus::new(q).expect("modulus");
        let (a, b) = (residues(&m, n, seed), residues(&m, n, !seed));
        agree("mul", || { let mut x = vec![0; n]; poly::mul(&mut x, &a, &b, &m); x });
        agree("dot", || { let mut x = vec![0; n]; poly::dot(&mut x, &[&a, &b], &[&b, &b], &m); x });
    }

    #[test]
    fn scans(
        rows in 1usize..150,
        dim in 0usize..40,
        query in proptest::collection::vec(any::<i32>(), 40),
    ) {
        agree("u32", || {
            let mut out = vec![0; rows];
            scan_u32(&bytes(4 * rows * dim, 41), rows, dim, &query[..dim], &mut out);
            out
        });
        agree("u24", || {
            let mut out = vec![0; rows];
            scan_u24(&bytes(3 * rows * dim, 42), rows, dim, &query[..dim], &mut out);
            out
        });
    }
}
