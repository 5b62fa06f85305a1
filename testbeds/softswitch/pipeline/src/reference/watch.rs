//! Observes the interpreter's runs: collects trace events and reads of undefined values.

use super::bits::Bits;
use super::event::{Event, EventAction, EventField, EventKind};
use super::poison::Fill;
use super::table::is_matched;
use super::value::{Value, field_types};
use super::var_path::{PathStep, VarPath};
use super::{EnvUnit, Interpreter};
use crate::table::Bound;
use p4lang::ast::{Direction, StructKind};
use p4lang::ir::{Action, Arg, Control, Expr, ExprKind, Param, Program, Table, Type, VarId};
use p4lang::source::Span;
use std::collections::BTreeSet;

/// Maximum number of events kept until the caller fetches them; further events are only counted.
const EVENT_LIMIT: usize = 65_536;

/// Collects events from the runs of blocks, if requested.
#[derive(Debug)]
pub struct Watch {
    /// The source of the contents of undefined values.
    pub fill: Fill,
    /// Whether every step of the program is recorded.
    pub steps: bool,
    /// Whether log messages and failed assertions are recorded.
    pub logs: bool,
    events: Vec<Event>,
    lost: u64,
    reported: BTreeSet<(Span, String)>,
}

impl Watch {
    /// Creates an observer that records reads of undefined values, if `fill` marks these, and no steps.
    pub fn new(fill: Fill) -> Watch {
        Watch {
            fill,
            steps: false,
            logs: false,
            events: Vec::new(),
            lost: 0,
            reported: BTreeSet::new(),
        }
    }

    /// The events since the last call, and the number of events lost beyond the limit.
    pub fn take(&mut self) -> (Vec<Event>, u64) {
        (
            std::mem::take(&mut self.events),
            std::mem::take(&mut self.lost),
        )
    }

    /// Records a step of the architecture, if steps are recorded.
    pub fn note(&mut self, kind: EventKind) {
        self.push(Event { at: None, kind });
    }

    fn push(&mut self, event: Event) {
        if self.events.len() < EVENT_LIMIT {
            self.events.push(event);
        } else {
            self.lost += 1;
        }
    }

    fn record(&mut self, program: &Program, span: Span, kind: impl FnOnce() -> EventKind) {
        if self.steps {
            let at = Some(program.source.location(span));
            self.push(Event { at, kind: kind() });
        }
    }

    pub(crate) fn block(&mut self, name: &str, program: &Program, span: Span) {
        let name = name.to_owned();
        self.record(program, span, || EventKind::Block { name });
    }

    pub(crate) fn state(&mut self, parser: &str, state: &str, program: &Program, span: Span) {
        let (parser, state) = (parser.to_owned(), state.to_owned());
        self.record(program, span, || EventKind::State { parser, state });
    }

    pub(crate) fn error(&mut self, error: &str, program: &Program, span: Span) {
        let error = error.to_owned();
        self.record(program, span, || EventKind::Error { error });
    }

    pub(crate) fn branch(&mut self, taken: bool, program: &Program, span: Span) {
        self.record(program, span, || {
            let text = program.source.slice(span).lines().next().unwrap_or("");
            let text = text.trim_end_matches(['{', ' ']).to_owned();
            EventKind::Branch { text, taken }
        });
    }

    /// Records a message of `log_msg`, if messages or steps are recorded.
    pub(crate) fn log(&mut self, message: String, program: &Program, span: Span) {
        if self.logs || self.steps {
            let at = Some(program.source.location(span));
            let kind = EventKind::Log { message };
            self.push(Event { at, kind });
        }
    }

    /// Records an `assert` or `assume` that failed, if messages or steps are recorded.
    pub(crate) fn assertion_failed(&mut self, function: &str, program: &Program, span: Span) {
        if self.logs || self.steps {
            let text = program.source.slice(span).lines().next().unwrap_or("");
            let at = Some(program.source.location(span));
            let kind = EventKind::AssertionFailed {
                function: function.to_owned(),
                text: text.trim_end_matches([';', ' ']).to_owned(),
            };
            self.push(Event { at, kind });
        }
    }

    /// Records that a decision, described by `what`, read an undefined value; only once for each source position.
    pub(crate) fn undefined(&mut self, what: String, program: &Program, span: Span) {
        if self.reported.insert((span, what.clone())) {
            let at = Some(program.source.location(span));
            let kind = EventKind::Undefined { what };
            self.push(Event { at, kind });
        }
    }
}

impl<'p> Interpreter<'_, 'p> {
    pub(crate) fn trace_extract(&mut self, place: &VarPath, value: &Value, offset_bits: usize) {
        if self.watch.steps {
            let header = self.name_of(place.var, &place.steps);
            let fields = fields_of(self.program, &place.ty, "", value);
            self.watch
                .record(self.program, self.span, || EventKind::Extract {
                    header,
                    offset_bits,
                    fields,
                });
        }
    }

    pub(crate) fn trace_emit(&mut self, place: &VarPath, bits: &Bits) {
        if self.watch.steps {
            let header = self.name_of(place.var, &place.steps);
            let bytes = bits.bytes(0);
            self.watch
                .record(self.program, self.span, || EventKind::Emit {
                    header,
                    bytes,
                });
        }
    }

    pub(crate) fn trace_action(&mut self, action: &'p Action, control: &'p Control) {
        if self.watch.steps {
            let mut params = Vec::new();
            for param in &action.params {
                let ty = &control.vars[param.var.index()].ty;
                let value = self.env().vars[param.var.index()].clone();
                if param.direction != Direction::Out {
                    params.extend(fields_of(self.program, ty, &param.name, &value));
                }
            }
            let name = action.name.clone();
            self.watch.record(self.program, self.span, || {
                EventKind::Action(EventAction { name, params })
            });
        }
    }

    pub(crate) fn trace_table(
        &mut self,
        table: &'p Table,
        index: usize,
        keys: &[Value],
        (hit, bound): (bool, &Bound),
        (control, params): (&'p Control, &[Value]),
    ) {
        if !self.watch.steps {
            return;
        }
        let declared = table.key.iter().filter(|k| is_matched(k)).zip(keys);
        let keys = declared
            .flat_map(|(key, value)| fields_of(self.program, &key.expr.ty, &key.name, value))
            .collect();
        let found = self.state.found[index].filter(|_| hit);
        let entry = self.state.tables[index].found_match(found);
        let action = bound.index.and_then(|i| table.actions.get(i as usize));
        let action = action.map(|offered| {
            let action = &control.actions[offered.action.index()];
            let declared = action.params.iter();
            let declared = declared.filter(|p| p.direction == Direction::None);
            let each = declared.zip(params).flat_map(|(param, value)| {
                let ty = &control.vars[param.var.index()].ty;
                fields_of(self.program, ty, &param.name, value)
            });
            EventAction {
                name: action.name.clone(),
                params: each.collect(),
            }
        });
        let table = table.name.clone();
        self.watch
            .record(self.program, self.span, || EventKind::Table {
                table,
                keys,
                entry,
                action,
            });
    }

    pub(crate) fn trace_method(
        &mut self,
        object: &str,
        method: &str,
        args: &'p [Arg],
        values: &[Value],
        (ty, result): (&Type, Option<&Value>),
    ) {
        if !self.watch.steps {
            return;
        }
        let inputs = args.iter().filter_map(|arg| match arg {
            Arg::In(e) => Some(e),
            _ => None,
        });
        let each = inputs.zip(values).enumerate();
        let args = each
            .flat_map(|(i, (e, v))| fields_of(self.program, &e.ty, &(i + 1).to_string(), v))
            .collect();
        let result = result.map_or_else(Vec::new, |v| fields_of(self.program, ty, "", v));
        self.trace_call((object, method), args, result);
    }

    /// Traces a call in a deparser that has no effect, because the packet has not requested it.
    pub(crate) fn trace_gated(&mut self, object: &str, method: &str) {
        let nothing = EventField {
            name: String::new(),
            value: "nothing".into(),
            width: 0,
        };
        self.trace_call((object, method), Vec::new(), vec![nothing]);
    }

    fn trace_call(&mut self, call: (&str, &str), args: Vec<EventField>, result: Vec<EventField>) {
        let (object, method) = (call.0.to_owned(), call.1.to_owned());
        self.watch
            .record(self.program, self.span, || EventKind::Extern {
                object,
                method,
                args,
                result,
            });
    }

    /// Traces a function call whose only argument is an l-value rather than a value.
    pub(crate) fn trace_of_place(
        &mut self,
        name: &str,
        arg: &'p Expr,
        (ty, result): (&Type, &Value),
    ) {
        if !self.watch.steps {
            return;
        }
        let place = match &arg.kind {
            ExprKind::Read(lvalue) => self.resolve(lvalue).ok(),
            _ => None,
        };
        let named = |place: VarPath| EventField {
            name: "1".into(),
            value: self.name_of(place.var, &place.steps),
            width: 0,
        };
        let args = place.map(named).into_iter().collect();
        let result = fields_of(self.program, ty, "", result);
        self.trace_call(("", name), args, result);
    }

    /// Traces the execution of a register action: the cell's index, its new value and the outputs.
    pub(crate) fn trace_execution(
        &mut self,
        call: (&str, &str),
        index: u64,
        after: &Value,
        outputs: &'p [Param],
    ) {
        if !self.watch.steps {
            return;
        }
        let (program, env) = (self.program, self.env());
        let of = |param: &Param| {
            let ty = &env.declared[param.var.index()].ty;
            fields_of(program, ty, &param.name, &env.vars[param.var.index()])
        };
        let mut result: Vec<EventField> = outputs.iter().flat_map(of).collect();
        for (i, bits) in after.scalars().iter().enumerate() {
            result.push(EventField {
                name: format!("cell.{i}"),
                value: format!("0x{:x}", bits.value),
                width: bits.width,
            });
        }
        let args = vec![EventField {
            name: "index".into(),
            value: format!("0x{index:x}"),
            width: 32,
        }];
        self.trace_call(call, args, result);
    }

    /// A resolved l-value in the notation of the source.
    pub(crate) fn name_of(&mut self, var: VarId, steps: &[PathStep]) -> String {
        let env = self.env();
        let declared = &env.declared[var.index()];
        let params = match env.scope {
            EnvUnit::Parser(parser) => parser.params.as_slice(),
            EnvUnit::Control(_, control) => control.params.as_slice(),
            EnvUnit::Function => &[],
        };
        let param = params.iter().find(|p| p.var == var);
        let mut name = param.map_or(&declared.name, |p| &p.name).clone();
        let mut ty = declared.ty.clone();
        for step in steps {
            match step {
                PathStep::Field(i) => {
                    let field = match &ty {
                        Type::Struct(id) => {
                            let fields = &self.program.types[id.index()].fields;
                            fields[*i as usize].name.clone()
                        }
                        _ => i.to_string(),
                    };
                    name = format!("{name}.{field}");
                    let types = field_types(self.program, &ty);
                    ty = types.into_iter().nth(*i as usize).unwrap_or(Type::Void);
                }
                PathStep::Element(i) => {
                    name = format!("{name}[{i}]");
                    ty = match ty {
                        Type::Stack(id, _) => Type::Struct(id),
                        _ => Type::Void,
                    };
                }
                PathStep::Slice(hi, lo) => name = format!("{name}[{hi}:{lo}]"),
            }
        }
        name
    }
}

/// Describes a metadata field by which the architecture decides about a packet.
pub(crate) fn decisive(name: &str) -> String {
    format!("{name}, which determines the packet's path")
}

/// Describes the first field that differs between the two executors.
pub(crate) fn first_difference(fast: &[EventField], reference: &[EventField]) -> String {
    let mut pairs = fast.iter().zip(reference);
    match pairs.find(|(a, b)| a != b) {
        Some((a, b)) => format!(
            "{} = {}, reference: {} = {}",
            a.name, a.value, b.name, b.value
        ),
        None => "a stack's nextIndex, or the number of its elements".into(),
    }
}

/// The scalars of a value, each with its name.
pub(crate) fn fields_of(
    program: &Program,
    ty: &Type,
    name: &str,
    value: &Value,
) -> Vec<EventField> {
    let under = |inner: &str| {
        if name.is_empty() {
            inner.to_owned()
        } else {
            format!("{name}.{inner}")
        }
    };
    match value {
        Value::Bits(bits) | Value::Own(true, bits) | Value::Varbit(_, bits) => vec![EventField {
            name: name.to_owned(),
            value: shown(program, ty, bits),
            width: bits.width,
        }],
        Value::Header { valid: false, .. } | Value::Own(false, _) => vec![EventField {
            name: name.to_owned(),
            value: "invalid".into(),
            width: 0,
        }],
        Value::Struct(fields) | Value::Union(fields) | Value::Header { fields, .. } => {
            let types = field_types(program, ty);
            let mut all = Vec::new();
            for (i, (value, ty_of_field)) in fields.iter().zip(&types).enumerate() {
                let member = match ty {
                    Type::Struct(id) => program.types[id.index()].fields[i].name.clone(),
                    _ => i.to_string(),
                };
                // Only the valid member of a union.
                let union = matches!(ty, Type::Struct(id) if program.types[id.index()].kind == StructKind::Union);
                if !union || value.is_valid() {
                    all.extend(fields_of(program, ty_of_field, &under(&member), value));
                }
            }
            all
        }
        Value::Stack { elements, .. } => {
            let types = field_types(program, ty);
            let mut all = Vec::new();
            for (i, (element, ty)) in elements.iter().zip(&types).enumerate() {
                // Only valid headers.
                let is_header = matches!(element, Value::Header { .. } | Value::Union(_));
                if !is_header || element.is_valid() {
                    all.extend(fields_of(program, ty, &format!("{name}[{i}]"), element));
                }
            }
            all
        }
        Value::Nothing => Vec::new(),
    }
}

/// Formats a scalar: members of enums and errors by name, `bool` as such, numbers in hexadecimal.
fn shown(program: &Program, ty: &Type, bits: &Bits) -> String {
    let member = usize::try_from(&bits.value).ok();
    let named = match ty {
        Type::Bool => Some(bits.is_true().to_string()),
        Type::Error => member.and_then(|i| program.errors.get(i)).cloned(),
        Type::Enum(id) => {
            let members = &program.enums[id.index()].members;
            member.and_then(|i| members.get(i)).cloned()
        }
        _ => None,
    };
    named.unwrap_or_else(|| format!("0x{:x}", bits.value))
}
