//! Reads `@p4runtime_translation`: the control plane uses another type in place of a new type (P4Runtime 1.4, section 6.4.9).

use super::types::SdnType;
use crate::ast::Literal;
use crate::ir::Annotation;
use crate::lexer::parse_int;
use crate::limits::LIMITS;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// Name of the annotation for a type that the control plane replaces.
pub(crate) const TRANSLATION: &str = "p4runtime_translation";

/// The error in a `@p4runtime_translation` annotation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The annotation's body is not a URI and a type.
    Form,
    /// The bit width in the annotation is missing or out of range.
    Width,
}

/// Parses `("uri", bit<32>)`, `("uri", 32)` or `("uri", string)`: (URI, type that the control plane uses).
pub(crate) fn translated(annotation: &Annotation) -> Result<(&str, SdnType), Mistake> {
    if let [Literal::Str(uri), Literal::Int(width)] = annotation.literals.as_slice() {
        return Ok((uri, bits(width)?));
    }
    let of_text = || {
        let (uri, ty) = annotation.text.rsplit_once(',')?;
        let uri = uri.trim().strip_prefix('"')?.strip_suffix('"')?;
        Some((uri, ty.split_whitespace().collect::<String>()))
    };
    let (uri, ty) = of_text().ok_or(Mistake::Form)?;
    if ty == "string" {
        return Ok((uri, SdnType::String));
    }
    let width = ty.strip_prefix("bit<").and_then(|w| w.strip_suffix('>'));
    let width = width.and_then(|width| parse_int(width).ok());
    Ok((uri, bits(&width.ok_or(Mistake::Form)?.value)?))
}

fn bits(width: &BigInt) -> Result<SdnType, Mistake> {
    let width = width.to_u32().filter(|w| (1..=LIMITS.width).contains(w));
    width.map(SdnType::Bits).ok_or(Mistake::Width)
}
