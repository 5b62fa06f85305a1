//! Texts with variables in braces: `nginx -p {dir}`, `curl http://{host.s.ip}/{n}`.
//!
//! Shells and programs use braces themselves (`${HOME}`, `%{time_total}`, `awk '{print}'`): only a text in the form of
//! one of our variables is a variable, and none after `$` or `%`.

use std::ops::Range;

use serde::{Serialize, Serializer};

/// A text with variables in braces, parsed: `curl http://{host.s.ip}/{n}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    variables: Vec<(Range<usize>, Variable)>,
}

/// A variable that a text may contain, in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// `{dir}`: the command's own folder, initially empty and removed after the run.
    Dir,
    /// `{dir.NAME}`: the folder of another command.
    DirOf(String),
    /// `{here}`: the folder of the file that contains the text.
    Here,
    /// `{n}`: the number of the command's run, counted from 1.
    Number,
    /// `{host.NAME.ip}`: a host's IPv4 address.
    Ip(String),
    /// `{host.NAME.name}`: a host's name.
    Name(String),
}

/// The error for an unknown variable, with its position in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no variable is called `{name}`")]
pub struct TemplateError {
    /// The variable's name, without braces.
    pub name: String,
    /// Byte range of the variable in the text, including the braces.
    pub place: Range<usize>,
}

impl Template {
    /// Parses a text, and finds its variables.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut variables = Vec::new();
        let mut at = 0;
        while let Some(open) = text[at..].find('{').map(|open| at + open) {
            at = open + 1;
            let Some(close) = text[at..].find(['{', '}']).map(|close| at + close) else {
                break;
            };
            if text[close..].starts_with('{') || text[..open].ends_with(['$', '%']) {
                continue;
            }
            let (name, place) = (&text[at..close], open..close + 1);
            let variable = match name {
                "dir" => Variable::Dir,
                "here" => Variable::Here,
                "n" => Variable::Number,
                _ => match named(name) {
                    Some(Ok(variable)) => variable,
                    Some(Err(())) => {
                        let name = name.to_owned();
                        return Err(TemplateError { name, place });
                    }
                    // These braces are not a variable of ours.
                    None => continue,
                },
            };
            at = place.end;
            variables.push((place, variable));
        }
        Ok(Template {
            text: text.to_owned(),
            variables,
        })
    }

    /// The text with each host name in variables replaced by the result of `host`.
    #[must_use]
    pub fn with_hosts(self, host: &impl Fn(&str) -> String) -> Template {
        let mut made = Template {
            text: String::with_capacity(self.text.len()),
            variables: Vec::with_capacity(self.variables.len()),
        };
        let mut at = 0;
        for (place, variable) in self.variables {
            made.text.push_str(&self.text[at..place.start]);
            let start = made.text.len();
            let variable = match variable {
                Variable::Ip(name) => {
                    let name = host(&name);
                    made.text.push_str(&format!("{{host.{name}.ip}}"));
                    Variable::Ip(name)
                }
                Variable::Name(name) => {
                    let name = host(&name);
                    made.text.push_str(&format!("{{host.{name}.name}}"));
                    Variable::Name(name)
                }
                other => {
                    made.text.push_str(&self.text[place.clone()]);
                    other
                }
            };
            made.variables.push((start..made.text.len(), variable));
            at = place.end;
        }
        made.text.push_str(&self.text[at..]);
        made
    }

    /// The text as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The variables, with their byte ranges in the text.
    #[must_use]
    pub fn variables(&self) -> &[(Range<usize>, Variable)] {
        &self.variables
    }

    /// The text with each variable replaced by the result of `value`.
    #[must_use]
    pub fn expand(&self, value: impl Fn(&Variable) -> String) -> String {
        let mut expanded = String::with_capacity(self.text.len());
        let mut at = 0;
        for (place, variable) in &self.variables {
            expanded.push_str(&self.text[at..place.start]);
            expanded.push_str(&value(variable));
            at = place.end;
        }
        expanded.push_str(&self.text[at..]);
        expanded
    }
}

/// Parses a variable that names a host or command; `None` for other texts, `Err` if the text only begins like a variable.
fn named(text: &str) -> Option<Result<Variable, ()>> {
    let found = match text.strip_prefix("host.") {
        Some(rest) => {
            let ip = rest.strip_suffix(".ip");
            let ip = ip.map(|host| (host, Variable::Ip as fn(String) -> _));
            let name = rest.strip_suffix(".name");
            ip.or(name.map(|host| (host, Variable::Name as fn(String) -> _)))
        }
        None => Some((
            text.strip_prefix("dir.")?,
            Variable::DirOf as fn(String) -> _,
        )),
    };
    Some(match found {
        Some((name, variable)) if !name.is_empty() => Ok(variable(name.to_owned())),
        _ => Err(()),
    })
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        let value = |variable: &Variable| match variable {
            Variable::Dir => "/d".to_owned(),
            Variable::Here => "/h".to_owned(),
            Variable::Number => "7".to_owned(),
            Variable::DirOf(command) => format!("/d/{command}"),
            Variable::Ip(host) => format!("<{host}>"),
            Variable::Name(host) => format!("[{host}]"),
        };
        Template::parse(text).expect("a template").expand(value)
    }

    #[test]
    fn roles_become_hosts() {
        let text = "{here}/x {host.server.ip}:{host.a.name} {{dir}} é{host.server.name}";
        let hosts = |role: &str| if role == "server" { "s" } else { "bb" }.to_owned();
        let bound = Template::parse(text)
            .expect("a template")
            .with_hosts(&hosts);
        let plain = "{here}/x {host.s.ip}:{host.bb.name} {{dir}} é{host.s.name}";
        assert_eq!(bound, Template::parse(plain).expect("a template"));
    }

    #[test]
    fn variables_get_their_values() {
        assert_eq!(
            expanded(
                "nginx -p {dir} -c {here}/a.conf; curl {host.s-1.ip}/{n}{n} {dir.web} {host.s.name}"
            ),
            "nginx -p /d -c /h/a.conf; curl <s-1>/77 /d/web [s]"
        );
    }

    #[test]
    fn braces_of_others_stay() {
        for text in [
            "awk '{print $1}'",
            "curl -w '%{time_total}\\n' ${dir} %{n} {}",
            "f() { echo {a,b}; }",
            "{ {host",
            "{hosts}",
        ] {
            assert_eq!(expanded(text), text);
        }
        assert_eq!(expanded("{{dir}}"), "{/d}");
    }

    #[test]
    fn a_variable_of_a_host_that_there_is_not_is_refused() {
        let error = Template::parse("x {host.s.mac}").expect_err("it is refused");
        assert_eq!((error.name.as_str(), error.place), ("host.s.mac", 2..14));
        assert!(Template::parse("{host..ip}").is_err());
        assert!(Template::parse("{dir.}").is_err());
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_read_or_refused(text in "[{}$%.a-z\u{e9} ]{0,24}|(\\{dir\\}|\\{n\\}|\\{host\\.[a-z.]{0,4}\\}|[{}$x]){0,6}") {
            match Template::parse(&text) {
                Ok(template) => proptest::prop_assert_eq!(
                    template.expand(|_| String::new()).len()
                        + template.variables().iter().map(|(place, _)| place.len()).sum::<usize>(),
                    text.len()
                ),
                Err(error) => proptest::prop_assert_eq!(&text[error.place], format!("{{{}}}", error.name)),
            }
        }
    }
}
