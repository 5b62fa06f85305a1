//! Adds the declarations to BMv2's JSON that p4c omits and BMv2 requires.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Declares the header stacks of a program whose `header_stacks` is empty; returns whether any was missing.
///
/// `p4c-bm2-psa` declares a stack's headers (`name[0]`, `name[1]` …) and its parsers extract into `name`, but it does not
/// declare the stack itself; `psa_switch` then exits with "Invalid reference to object of type 'header stack'".
pub fn declare_stacks(program: &mut Value) -> bool {
    let Some(program) = program.as_object_mut() else {
        return false;
    };
    let declared = program.get("header_stacks").and_then(Value::as_array);
    if declared.is_some_and(|stacks| !stacks.is_empty()) {
        return false;
    }
    let stacks = stacks(program);
    let missing = !stacks.is_empty();
    if missing {
        program.insert("header_stacks".to_owned(), stacks.into());
    }
    missing
}

fn stacks(program: &Map<String, Value>) -> Vec<Value> {
    // Header type, and the id of each member by its index.
    let mut found: BTreeMap<&str, (&Value, BTreeMap<u32, &Value>)> = BTreeMap::new();
    let headers = program.get("headers").and_then(Value::as_array);
    for header in headers.into_iter().flatten() {
        let name = header["name"].as_str().unwrap_or_default();
        let Some((stack, index)) = member(name) else {
            continue;
        };
        let (_, ids) = found
            .entry(stack)
            .or_insert((&header["header_type"], BTreeMap::new()));
        ids.insert(index, &header["id"]);
    }
    let stack = |(id, (name, (header_type, ids))): (usize, (&str, (&Value, BTreeMap<_, _>)))| {
        let header_ids: Vec<&Value> = ids.into_values().collect();
        json!({
            "name": name,
            "id": id,
            "header_type": header_type,
            "size": header_ids.len(),
            "header_ids": header_ids,
        })
    };
    found.into_iter().enumerate().map(stack).collect()
}

/// Splits the name of a header stack's element, `name[3]`, into `name` and 3; `None` if it has another form.
fn member(name: &str) -> Option<(&str, u32)> {
    let (stack, index) = name.strip_suffix(']')?.split_once('[')?;
    Some((stack, index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, id: u32) -> Value {
        json!({"name": name, "id": id, "header_type": "option_t"})
    }

    #[test]
    fn a_stack_is_declared_with_its_members_in_order() {
        // Eleven members, because as text [10] sorts before [2].
        let mut headers = vec![header("ethernet", 7)];
        headers.extend((0..11).map(|i| header(&format!("options[{i}]"), 30 - i)));
        let mut program = json!({"headers": headers, "header_stacks": []});
        assert!(declare_stacks(&mut program));
        let stack = json!({
            "name": "options", "id": 0, "header_type": "option_t", "size": 11,
            "header_ids": (20..=30).rev().collect::<Vec<u32>>(),
        });
        assert_eq!(program["header_stacks"], json!([stack]));
        assert!(!declare_stacks(&mut program), "it is there now");
    }

    #[test]
    fn a_program_without_stacks_stays_as_it_is() {
        for mut program in [
            json!({"headers": [header("ethernet", 0)], "header_stacks": []}),
            json!({}),
            json!([1]),
        ] {
            let before = program.clone();
            assert!(!declare_stacks(&mut program));
            assert_eq!(program, before);
        }
    }
}
