//! Expands the extensions of Tofino's compiler to p4c's STF format: several commands on a line, a command on several
//! lines, `setenv`, and shell loops. The result has one command a line.
//!
//! No shell runs. Of its language only `$(for V in $(seq A B); do printf "FORMAT" ARGUMENT…; done)` is supported, with
//! `%d`, `%x` and `%0Nx` in the format.

use std::collections::BTreeMap;

/// Maximum number of iterations of a shell loop.
const MOST_ROUNDS: u64 = 65_536;

/// Expands `;`, variables and loops in an STF text. Line numbers stay the same only if the text has none of these.
pub fn expand(text: &str) -> Result<String, String> {
    let mut variables = BTreeMap::new();
    let mut out = String::new();
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for (i, line) in joined.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        let failed = |what: String| format!("line {}: {what}", i + 1);
        if let Some(written) = line.strip_prefix("$(") {
            let inside = written
                .strip_suffix(')')
                .ok_or_else(|| failed("a bracket is missing".into()))?;
            out.push_str(&expand_loop(inside).map_err(failed)?);
        } else if let Some(rest) = line.strip_prefix("setenv ") {
            let (name, value) = rest
                .trim()
                .split_once(char::is_whitespace)
                .unwrap_or((rest, ""));
            variables.insert(name.to_owned(), value.trim().to_owned());
        } else {
            for command in substitute(line, &variables).split(';') {
                out.push_str(command.trim());
                out.push('\n');
            }
        }
    }
    Ok(out)
}

/// Replaces `$NAME` by the value of a variable that is set; other dollar signs belong to field names and stay.
fn substitute(line: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut parts = line.split('$');
    out.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = part.split_at(end.unwrap_or(part.len()));
        match variables.get(name) {
            Some(value) => out.push_str(value),
            None => {
                out.push('$');
                out.push_str(name);
            }
        }
        out.push_str(rest);
    }
    out
}

/// Text that a shell loop prints.
fn expand_loop(text: &str) -> Result<String, String> {
    let parsed = || {
        let (name, rest) = text.trim().strip_prefix("for ")?.split_once(" in ")?;
        let (range, rest) = rest.trim().strip_prefix("$(seq ")?.split_once(')')?;
        let (first, last) = range.trim().split_once(' ')?;
        let rest = rest.trim().strip_prefix(';')?.trim().strip_prefix("do ")?;
        let rest = rest.trim().strip_prefix("printf \"")?;
        let (format, rest) = rest.split_once('"')?;
        let arguments = rest.trim().strip_suffix("done")?.trim().strip_suffix(';')?;
        let range = first.parse::<u64>().ok()?..=last.trim().parse::<u64>().ok()?;
        Some((name.trim(), range, format, arguments))
    };
    let (name, range, format, arguments) =
        parsed().ok_or_else(|| format!("not understood: {text}"))?;
    let mut out = String::new();
    for value in range.take(MOST_ROUNDS as usize) {
        let argument = |word: &str| match word.strip_prefix('$') {
            Some(variable) if variable == name => Ok(value),
            _ => word.parse().map_err(|_| format!("not a number: {word}")),
        };
        let values: Result<Vec<u64>, String> = arguments.split_whitespace().map(argument).collect();
        let printed = print_format(format, &values?)?;
        out.extend(printed.split(';').flat_map(|c| [c.trim(), "\n"]));
    }
    Ok(out)
}

/// Formats numbers like the shell's `printf`.
fn print_format(format: &str, values: &[u64]) -> Result<String, String> {
    let mut values = values.iter();
    let mut parts = format.split('%');
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        let (width, rest) = part.split_at(end.ok_or_else(|| format!("not a format: %{part}"))?);
        let value = values.next().copied().unwrap_or(0);
        let (kind, rest) = rest.split_at(1);
        let digits = match kind {
            "d" => value.to_string(),
            "x" => format!("{value:x}"),
            _ => return Err(format!("not a format: %{part}")),
        };
        let fill = if width.starts_with('0') { '0' } else { ' ' };
        let width: usize = match width {
            "" => 0,
            width => width
                .parse()
                .map_err(|_| format!("not a format: %{part}"))?,
        };
        out.extend(std::iter::repeat_n(
            fill,
            width.saturating_sub(digits.len()),
        ));
        out.push_str(&digits);
        out.push_str(rest);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_semicolons_are_taken_apart() {
        let text = "setenv HEAD aa bb\npacket 1 $HEAD \\\ncc; wait # end; of line\nadd t h.$valid$:1 a()\n";
        assert_eq!(
            expand(text).unwrap(),
            "packet 1 aa bb  cc\nwait\nadd t h.$valid$:1 a()\n"
        );
    }

    #[test]
    fn a_loop_writes_its_lines() {
        let text = "$(for n in $(seq 9 11); do printf \"packet %d %04x %x;\" 3 $n 255; done)\n";
        let lines: Vec<String> = expand(text)
            .unwrap()
            .lines()
            .filter(|l| !l.is_empty())
            .map(str::to_owned)
            .collect();
        assert_eq!(
            lines,
            ["packet 3 0009 ff", "packet 3 000a ff", "packet 3 000b ff"]
        );
        assert!(expand("$(rm x)").is_err());
        assert!(expand("$(for n in $(seq 1 2); do printf \"%s\" $n; done)").is_err());
    }
}
