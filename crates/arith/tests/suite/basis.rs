//! Basis conversion against integers written out in words, on every back-end.

use ciphervec_arith::{ArithError, Backend, BasisConversion, Modulus, Stream, ntt_primes};

/// A natural number, least significant word first.
type Natural = Vec<u64>;

fn times(x: &Natural, factor: u64) -> Natural {
    let mut out = Vec::with_capacity(x.len() + 1);
    let mut carry = 0u128;
    for &word in x {
        carry += u128::from(word) * u128::from(factor);
        out.push(carry as u64);
        carry >>= 64;
    }
    out.push(carry as u64);
    out
}

fn minus(x: &Natural, y: &Natural) -> Natural {
    let mut borrow = false;
    let words = x.iter().zip(y.iter().chain(std::iter::repeat(&0)));
    words
        .map(|(&a, &b)| {
            let (d, first) = a.overflowing_sub(b);
            let (d, second) = d.overflowing_sub(u64::from(borrow));
            borrow = first | second;
            d
        })
        .collect()
}

fn shifted_down(x: &Natural, bits: u32) -> Natural {
    let (words, bits) = (bits as usize / 64, bits % 64);
    let at = |i: usize| x.get(i).copied().unwrap_or(0);
    (words..x.len())
        .map(|i| (u128::from(at(i)) | u128::from(at(i + 1)) << 64) >> bits)
        .map(|w| w as u64)
        .collect()
}

/// `x mod q` by plain division, word by word, with the sign of the number.
fn residue(x: &Natural, negative: bool, q: u64) -> u64 {
    let q = u128::from(q);
    let r = x.iter().rev().fold(0, |r, &word| ((r << 64) | u128::from(word)) % q);
    (if negative && r != 0 { q - r } else { r }) as u64
}

fn moduli(values: &[u64]) -> Vec<Modulus> {
    values.iter().map(|&q| Modulus::new(q).expect("a modulus")).collect()
}

/// Numbers up to `Q (1/2 - 2^-45)`, the extremes among them, with signs.
fn numbers(product: &Natural, count: usize) -> Vec<(Natural, bool)> {
    let largest = minus(&shifted_down(product, 1), &shifted_down(product, 45));
    let mut out: Vec<(Natural, bool)> = vec![
        (vec![0], false),
        (vec![1], false),
        (vec![1], true),
        (largest.clone(), false),
        (largest.clone(), true),
    ];
    let mut stream = Stream::new(&[5; 32], product.len() as u64);
    while out.len() < count {
        let mut bytes = vec![0; 8 * largest.len()];
        stream.fill(&mut bytes);
        let words = bytes.as_chunks::<8>().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
        // A quarter of the words' range and less stays below half of the product wherever its top
        // word is.
        let drop = 64 - product.last().map_or(0, |top| top.ilog2());
        let number = shifted_down(&words, drop + 2 + out.len() as u32 % 50);
        out.push((number, bytes[0] % 2 == 1));
    }
    out
}

fn bases() -> Vec<(Vec<u64>, Vec<u64>)> {
    let large = ntt_primes(50, 1 << 12, 20).expect("primes");
    let middle = ntt_primes(40, 1 << 12, 40).expect("primes");
    let small = ntt_primes(28, 1 << 12, 4).expect("primes");
    vec![
        (large[..1].to_vec(), middle[..3].to_vec()),
        (middle[..1].to_vec(), large[..2].to_vec()),
        (large[..4].to_vec(), middle[..12].to_vec()),
        (middle[..12].to_vec(), large[..4].to_vec()),
        (large[..16].to_vec(), middle.clone()),
        // Every size at once, targets among the sources, tiny odd targets.
        (
            [&small[..2], &large[..3], &[3, 35]].concat(),
            [&large[2..5], &small[..], &[3, 9]].concat(),
        ),
        (vec![3, 5], vec![7]),
        ([&large[..], &middle[..12]].concat(), small.clone()),
    ]
}

#[test]
fn converts_centred_integers() {
    for (from, to) in bases() {
        let product = from.iter().fold(vec![1], |product, &q| times(&product, q));
        let product: Natural = {
            let words = product.iter().rposition(|&w| w != 0).map_or(0, |i| i + 1);
            product[..words].to_vec()
        };
        let conversion = BasisConversion::new(&moduli(&from), &moduli(&to)).expect("a conversion");
        assert_eq!((conversion.sources(), conversion.targets()), (from.len(), to.len()));
        for count in [5, 64, 200, 1000] {
            let numbers = numbers(&product, count);
            let residues = |q: &u64| -> Vec<u64> {
                numbers.iter().map(|(x, negative)| residue(x, *negative, *q)).collect()
            };
            let input: Vec<Vec<u64>> = from.iter().map(residues).collect();
            let expected: Vec<Vec<u64>> = to.iter().map(residues).collect();
            let views: Vec<&[u64]> = input.iter().map(Vec::as_slice).collect();
            for backend in Backend::available() {
                let mut output = vec![vec![u64::MAX; count]; to.len()];
                let mut out: Vec<&mut [u64]> = output.iter_mut().map(Vec::as_mut_slice).collect();
                backend.run(|| conversion.convert(&views, &mut out)).expect("available");
                assert!(output == expected, "{}: {from:?} to {to:?}", backend.name());
            }
        }
    }
}

#[test]
fn doubtful_integers_stay_congruent_on_every_back_end_alike() {
    let from = ntt_primes(50, 1 << 12, 3).expect("primes");
    let to = ntt_primes(49, 1 << 12, 3).expect("primes");
    let product = from.iter().fold(vec![1], |product, &q| times(&product, q));
    let half = shifted_down(&product, 1);
    let numbers: Vec<(Natural, bool)> = (0..64)
        .map(|i| (minus(&half, &vec![u64::from(i / 2 % 4 == 0), 1 << (i / 2)]), i % 2 == 1))
        .collect();
    let conversion = BasisConversion::new(&moduli(&from), &moduli(&to)).expect("a conversion");
    let input: Vec<Vec<u64>> = from
        .iter()
        .map(|&q| numbers.iter().map(|(x, negative)| residue(x, *negative, q)).collect())
        .collect();
    let views: Vec<&[u64]> = input.iter().map(Vec::as_slice).collect();
    let mut reference: Option<Vec<Vec<u64>>> = None;
    for backend in Backend::available() {
        let mut output = vec![vec![0; numbers.len()]; to.len()];
        let mut out: Vec<&mut [u64]> = output.iter_mut().map(Vec::as_mut_slice).collect();
        backend.run(|| conversion.convert(&views, &mut out)).expect("available");
        for (i, (x, negative)) in numbers.iter().enumerate() {
            // x, or x - Q for a positive and x + Q for a negative one: |x - Q| = Q - |x|, of the
            // other sign.
            let other = minus(&product, x);
            let same = to.iter().zip(&output).all(|(&p, o)| o[i] == residue(x, *negative, p));
            let wrapped =
                to.iter().zip(&output).all(|(&p, o)| o[i] == residue(&other, !negative, p));
            assert!(same || wrapped, "{}: number {i}", backend.name());
        }
        match &reference {
            None => reference = Some(output),
            Some(reference) => assert!(&output == reference, "{}", backend.name()),
        }
    }
}

#[test]
fn refuses_bases_it_cannot_convert() {
    let primes = moduli(&ntt_primes(50, 1 << 12, 33).expect("primes"));
    for count in [0, 33] {
        assert!(matches!(
            BasisConversion::new(&primes[..count], &primes[..1]),
            Err(ArithError::Basis { count: c, .. }) if c == count
        ));
    }
    let twice = [primes[0], primes[1], primes[0]];
    assert!(matches!(BasisConversion::new(&twice, &primes), Err(ArithError::Modulus { .. })));
    for bad in moduli(&[2, 1 << 40, (1 << 50) + 1, 1 << 61]) {
        assert!(BasisConversion::new(&[bad], &primes[..1]).is_err());
        assert!(BasisConversion::new(&primes[..1], &[bad]).is_err());
    }
}

#[test]
#[should_panic(expected = "differ in length")]
fn refuses_polynomials_of_different_lengths() {
    let primes = moduli(&ntt_primes(50, 1 << 12, 2).expect("primes"));
    let conversion = BasisConversion::new(&primes[..1], &primes[1..]).expect("a conversion");
    conversion.convert(&[&[1, 2, 3]], &mut [&mut [0, 0]]);
}
