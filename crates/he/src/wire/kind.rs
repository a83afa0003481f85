//! Bytes and names of schemes and of kinds of frame.

/// The schemes: for each its byte, and what messages call it.
macro_rules! schemes {
    ($($(#[$doc:meta])* $scheme:ident = $byte:literal, $words:literal;)+) => {
        /// The scheme a frame belongs to.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Scheme {
            $($(#[$doc])* $scheme = $byte,)+
        }

        impl Scheme {
            pub(super) const ALL: &[Scheme] = &[$(Scheme::$scheme),+];

            /// The scheme in words.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Scheme::$scheme => $words,)+
                }
            }
        }
    };
}

schemes! {
    /// Nothing encrypted.
    Plain = 0, "plain";
    /// The compact sealed form.
    Compact = 1, "compact";
    /// The ring sealed form.
    Ring = 2, "ring";
    /// Paillier.
    Paillier = 3, "Paillier";
    /// Damgård–Jurik.
    DamgardJurik = 4, "Damgård–Jurik";
    /// Okamoto–Uchiyama.
    OkamotoUchiyama = 5, "Okamoto–Uchiyama";
    /// Exponential ElGamal.
    ElGamal = 6, "ElGamal";
    /// RNS-CKKS.
    Ckks = 7, "CKKS";
    /// Private lookup, whatever its strategy encrypts with.
    Lookup = 8, "lookup";
}

impl Scheme {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Scheme::ALL.iter().copied().find(|scheme| *scheme as u8 == byte)
    }
}

/// What a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// The public description of an index.
    Spec = 1,
    /// An immutable batch of vectors.
    Segment = 2,
    /// A batch of queries.
    Query = 3,
    /// A server's answer to a query.
    Response = 4,
    /// Galois keys for one epoch.
    EvaluationKeys = 5,
    /// The public key of an additively homomorphic scheme.
    PublicKey = 6,
    /// Its secret key, unencrypted.
    SecretKey = 7,
    /// A table of ciphertexts.
    Ciphertexts = 8,
    /// Noises computed ahead, each for one encryption.
    NoisePool = 9,
    /// Vectors under an additively homomorphic scheme.
    EncryptedVectors = 10,
    /// The parameters of a scheme that lets the user choose them.
    Parameters = 11,
    /// What somebody needs who may add vectors to an index and not read them.
    WriterCard = 12,
    /// The key of one segment, wrapped to the index's owner.
    SegmentKey = 13,
    /// A person's public key, which others share keys with.
    Recipient = 16,
    /// A master key, sealed to several people.
    SharedKeys = 17,
    /// The plan of a program.
    Program = 18,
    /// The evaluation keys that a plan lists.
    ProgramKeys = 19,
    /// An encrypted input of a program.
    ProgramInput = 20,
    /// The encrypted outputs of a program.
    ProgramAnswer = 21,
    /// A batch of queries that names the segments it is about.
    RoutedQuery = 22,
    /// The keys that refresh ciphertexts.
    BootstrappingKeys = 23,
    /// Ciphertexts of half the degree, modulo one prime.
    CompactCiphertexts = 24,
    /// The key that switches them to the whole ring.
    RingSwitchKey = 25,
    /// The evaluation keys of private retrieval.
    SelectorKeys = 26,
    /// Some fetches of records.
    RetrievalQuery = 27,
    /// The fetched records, encrypted.
    RetrievalAnswer = 28,
    /// A person's public keys, for lists of members.
    MemberCard = 29,
}

impl Kind {
    pub(super) const ALL: [Kind; 27] = [
        Kind::Spec,
        Kind::Segment,
        Kind::Query,
        Kind::Response,
        Kind::EvaluationKeys,
        Kind::PublicKey,
        Kind::SecretKey,
        Kind::Ciphertexts,
        Kind::NoisePool,
        Kind::EncryptedVectors,
        Kind::Parameters,
        Kind::WriterCard,
        Kind::SegmentKey,
        Kind::Recipient,
        Kind::SharedKeys,
        Kind::Program,
        Kind::ProgramKeys,
        Kind::ProgramInput,
        Kind::ProgramAnswer,
        Kind::RoutedQuery,
        Kind::BootstrappingKeys,
        Kind::CompactCiphertexts,
        Kind::RingSwitchKey,
        Kind::SelectorKeys,
        Kind::RetrievalQuery,
        Kind::RetrievalAnswer,
        Kind::MemberCard,
    ];

    /// The kind in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Spec => "an index description",
            Kind::Segment => "a segment",
            Kind::Query => "a query",
            Kind::Response => "a response",
            Kind::EvaluationKeys => "evaluation keys",
            Kind::PublicKey => "a public key",
            Kind::SecretKey => "a secret key",
            Kind::Ciphertexts => "ciphertexts",
            Kind::NoisePool => "a noise pool",
            Kind::EncryptedVectors => "encrypted vectors",
            Kind::Parameters => "parameters",
            Kind::WriterCard => "a writer's card",
            Kind::SegmentKey => "a wrapped segment key",
            Kind::Recipient => "a person's public key",
            Kind::SharedKeys => "shared keys",
            Kind::Program => "a program's plan",
            Kind::ProgramKeys => "a program's evaluation keys",
            Kind::ProgramInput => "a program's input",
            Kind::ProgramAnswer => "a program's answer",
            Kind::RoutedQuery => "a query that names segments",
            Kind::BootstrappingKeys => "bootstrapping keys",
            Kind::CompactCiphertexts => "compact ciphertexts",
            Kind::RingSwitchKey => "a ring switching key",
            Kind::SelectorKeys => "keys of private retrieval",
            Kind::RetrievalQuery => "a retrieval query",
            Kind::RetrievalAnswer => "a retrieval answer",
            Kind::MemberCard => "a member's card",
        }
    }

    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}
