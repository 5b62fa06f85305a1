//! Encodes structured annotations (`@name[…]`) and documentation (`@brief`, `@description`).

use crate::config;
use p4lang::ast::Literal;
use p4lang::p4info as model;

pub(super) fn structured(
    list: &[model::StructuredAnnotation],
) -> Vec<config::StructuredAnnotation> {
    use config::structured_annotation::Body;
    let body = |body: &model::Structured| match body {
        model::Structured::List(items) => Body::ExpressionList(config::ExpressionList {
            expressions: items.iter().map(expression).collect(),
        }),
        model::Structured::Map(pairs) => Body::KvPairList(config::KeyValuePairList {
            kv_pairs: pairs
                .iter()
                .map(|(key, value)| config::KeyValuePair {
                    key: key.clone(),
                    value: Some(expression(value)),
                })
                .collect(),
        }),
    };
    list.iter()
        .map(|annotation| config::StructuredAnnotation {
            name: annotation.name.clone(),
            body: Some(body(&annotation.body)),
            ..Default::default()
        })
        .collect()
}

/// Encodes a literal of an annotation: numbers have 64 bits in the protocol, so larger ones are sent as text.
fn expression(literal: &Literal) -> config::Expression {
    use config::expression::Value;
    let value = match literal {
        Literal::Int(n) => match i64::try_from(n) {
            Ok(n) => Value::Int64Value(n),
            Err(_) => Value::StringValue(n.to_string()),
        },
        Literal::Str(s) => Value::StringValue(s.clone()),
        Literal::Bool(b) => Value::BoolValue(*b),
    };
    config::Expression { value: Some(value) }
}

pub(super) fn documentation(brief: &str, description: &str) -> Option<config::Documentation> {
    (!brief.is_empty() || !description.is_empty()).then(|| config::Documentation {
        brief: brief.to_owned(),
        description: description.to_owned(),
    })
}
