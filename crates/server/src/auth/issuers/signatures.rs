//! Signatures of tokens, checked by the library that TLS uses here. Nothing is signed, and no algorithm with a shared
//! secret is there: such a key, once public, would sign for anybody.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{self as with, RsaParameters, UnparsedPublicKey, VerificationAlgorithm};
use signature::Verifier;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// For this process.
pub fn install() {
    // It fails where it was done before.
    let _ = PROVIDER.install_default();
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let way = way(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
    if key.family() != family(&way) {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Check { algorithm: *algorithm, way, key: key.clone() }))
}

enum Way {
    Rsa(&'static RsaParameters),
    Ec(&'static dyn VerificationAlgorithm),
    Ed(&'static dyn VerificationAlgorithm),
}

fn way(algorithm: Algorithm) -> Option<Way> {
    Some(match algorithm {
        Algorithm::RS256 => Way::Rsa(&with::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Way::Rsa(&with::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Way::Rsa(&with::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Way::Rsa(&with::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Way::Rsa(&with::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Way::Rsa(&with::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Way::Ec(&with::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Way::Ec(&with::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Way::Ed(&with::ED25519),
        _ => return None,
    })
}

fn family(way: &Way) -> AlgorithmFamily {
    match way {
        Way::Rsa(_) => AlgorithmFamily::Rsa,
        Way::Ec(_) => AlgorithmFamily::Ec,
        Way::Ed(_) => AlgorithmFamily::Ed,
    }
}

struct Check {
    algorithm: Algorithm,
    way: Way,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for Check {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (&self.way, self.key.kind()) {
            (Way::Rsa(way), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                with::RsaPublicKeyComponents { n, e }.verify(way, message, signature)
            }
            (Way::Ec(way) | Way::Ed(way), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*way, point).verify(message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Check {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::jwk::Jwk;

    /// The examples of RFC 7515 (A.2, A.3) and RFC 8037 (A.4): algorithm, key, token.
    const EXAMPLES: [(Algorithm, &str, &str); 3] = [
        (
            Algorithm::RS256,
            r#"{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}"#,
            "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
        ),
        (
            Algorithm::ES256,
            r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            Algorithm::EdDSA,
            r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        ),
    ];

    fn checks(algorithm: Algorithm, key: &str, token: &str) -> bool {
        let jwk: Jwk = serde_json::from_str(key).unwrap();
        let Ok(verifier) = verifier(&algorithm, &DecodingKey::from_jwk(&jwk).unwrap()) else {
            return false;
        };
        let (message, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        verifier.verify(message.as_bytes(), &signature).is_ok()
    }

    #[test]
    fn examples_of_the_standards_are_right_and_changed_ones_are_not() {
        for (algorithm, key, token) in EXAMPLES {
            assert!(checks(algorithm, key, token), "{algorithm:?}");
            assert!(!checks(algorithm, key, &token.replacen("eyJ", "eyK", 1)), "{algorithm:?}");
            for (other, key, _) in EXAMPLES.iter().filter(|(other, ..)| *other != algorithm) {
                assert!(!checks(algorithm, key, token) && !checks(*other, key, token));
            }
        }
        for shared in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            assert!(verifier(&shared, &DecodingKey::from_secret(b"secret").unwrap()).is_err());
        }
    }
}
