//! Key switch: both sums of digits and keys, over four lanes of doubles.

macro_rules! double_pairs {
    ($features:literal) => {
        use super::lanes::{
            Constants, LANES, add, load_residues, multiply, reduce, store_residues, zero,
        };
        use super::poly::TERMS;
        use crate::backend::portable;
        use crate::modulus::{KERNEL_BITS, Modulus};

        #[target_feature(enable = $features)]
        pub(crate) fn dot_pair(
            out0: &mut [u64],
            out1: &mut [u64],
            digits: &[&[u64]],
            keys0: &[&[u64]],
            keys1: &[&[u64]],
            m: &Modulus,
        ) {
            pairs::<false>((out0, out1), digits, (keys0, keys1), &[], m);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn dot_pair_permuted(
            out0: &mut [u64],
            out1: &mut [u64],
            digits: &[&[u64]],
            keys0: &[&[u64]],
            keys1: &[&[u64]],
            perm: &[u32],
            m: &Modulus,
        ) {
            pairs::<true>((out0, out1), digits, (keys0, keys1), perm, m);
        }

        /// Both sums, the products as doubles, reduced once in eight terms; the digits are read
        /// where `perm` says if `PERMUTED`.
        #[inline]
        #[target_feature(enable = $features)]
        fn pairs<const PERMUTED: bool>(
            (out0, out1): (&mut [u64], &mut [u64]),
            digits: &[&[u64]],
            (keys0, keys1): (&[&[u64]], &[&[u64]]),
            perm: &[u32],
            m: &Modulus,
        ) {
            let place = |i: usize| if PERMUTED { perm[i] as usize } else { i };
            if m.value() >> KERNEL_BITS != 0 {
                return portable::switch::dot_pair_from(
                    0,
                    (out0, out1),
                    digits,
                    (keys0, keys1),
                    place,
                    m,
                );
            }
            let c = Constants::of(m);
            let (whole0, rest0) = out0.as_chunks_mut::<LANES>();
            let (whole1, rest1) = out1.as_chunks_mut::<LANES>();
            let start = whole0.len() * LANES;
            for (i, (out0, out1)) in whole0.iter_mut().zip(whole1).enumerate() {
                let (mut sum0, mut sum1) = (zero(), zero());
                for ((d, k0), k1) in
                    digits.chunks(TERMS).zip(keys0.chunks(TERMS)).zip(keys1.chunks(TERMS))
                {
                    for ((d, k0), k1) in d.iter().zip(k0).zip(k1) {
                        let x = if PERMUTED {
                            load_residues(&[0, 1, 2, 3].map(|lane| d[place(i * LANES + lane)]))
                        } else {
                            load_residues(&d.as_chunks::<LANES>().0[i])
                        };
                        let y0 = load_residues(&k0.as_chunks::<LANES>().0[i]);
                        let y1 = load_residues(&k1.as_chunks::<LANES>().0[i]);
                        sum0 = add(sum0, multiply(&c, x, y0));
                        sum1 = add(sum1, multiply(&c, x, y1));
                    }
                    (sum0, sum1) = (reduce(&c, sum0), reduce(&c, sum1));
                }
                store_residues(&c, out0, sum0);
                store_residues(&c, out1, sum1);
            }
            let place = |i| place(start + i);
            portable::switch::dot_pair_from(
                start,
                (rest0, rest1),
                digits,
                (keys0, keys1),
                place,
                m,
            );
        }
    };
}
pub(crate) use double_pairs;
