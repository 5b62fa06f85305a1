//! Parses declarations of types: `typedef`, `type`, structs, headers, unions, enums.

use super::{Parsed, Parser};
use crate::ast::{Decl, DeclKind, EnumMember, Field, StructKind, TypeOrDecl};
use crate::lexer::Tok;

impl Parser<'_, '_> {
    pub(super) fn typedef(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let start = self.span();
        let annotations = self.annotations()?;
        let ty = match self.kind() {
            Tok::Header | Tok::Struct | Tok::HeaderUnion | Tok::Enum => {
                let kind = if self.kind() == Tok::Enum {
                    self.enumeration()?
                } else {
                    self.structure()?
                };
                TypeOrDecl::Decl(Box::new(Decl {
                    annotations,
                    kind,
                    span: self.since(start),
                }))
            }
            _ => TypeOrDecl::Type(self.ty()?),
        };
        let name = self.name("the new name of the type")?;
        let ty = match ty {
            TypeOrDecl::Type(ty) => TypeOrDecl::Type(self.sized_behind(ty, &name)?),
            declared => declared,
        };
        self.declare_type(&name);
        self.expect(Tok::Semi, "after the typedef")?;
        Ok(DeclKind::Typedef { ty, name })
    }

    pub(super) fn new_type(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let ty = self.ty()?;
        let name = self.name("the new type's name")?;
        self.declare_type(&name);
        self.expect(Tok::Semi, "after the type")?;
        Ok(DeclKind::NewType { ty, name })
    }

    pub(super) fn structure(&mut self) -> Parsed<DeclKind> {
        let kind = match self.bump().kind {
            Tok::Header => StructKind::Header,
            Tok::HeaderUnion => StructKind::Union,
            _ => StructKind::Struct,
        };
        let name = self.name("the type's name")?;
        self.declare_type(&name);
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let open = p.expect(Tok::LBrace, "before the fields")?.span;
            let fields = p.items(open, "the type", |p| p.field())?;
            Ok(DeclKind::Struct {
                kind,
                name,
                type_params,
                fields,
            })
        })
    }

    fn field(&mut self) -> Parsed<Field> {
        let annotations = self.annotations()?;
        let ty = self.ty()?;
        let name = self.name("the field's name")?;
        let ty = self.sized_behind(ty, &name)?;
        self.expect(Tok::Semi, "after the field")?;
        Ok(Field {
            annotations,
            ty,
            name,
        })
    }

    pub(super) fn enumeration(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let repr = if self.kind() == Tok::Ident && self.nth(1) == Tok::LBrace {
            None
        } else {
            Some(self.ty()?)
        };
        let name = self.name("the enum's name")?;
        self.declare_type(&name);
        self.expect(Tok::LBrace, "before the enum's members")?;
        let mut members = Vec::new();
        while self.kind() != Tok::RBrace {
            self.annotations()?;
            let name = self.name("a member of the enum")?;
            let value = if self.eat(Tok::Assign) {
                Some(self.expr()?)
            } else {
                None
            };
            members.push(EnumMember { name, value });
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.close_list("the enum's members")?;
        Ok(DeclKind::Enum {
            repr,
            name,
            members,
        })
    }
}
