import type { ComponentChild } from 'preact';
import type { SiteLanguage } from '../../api/pages/site/site-pages.ts';

export type Language = SiteLanguage;

/** A text that depends on `count`. The forms are those of the language's plural rules. */
export type PluralForms = { readonly [Form in Exclude<Intl.LDMLPluralRule, 'other'>]?: string } & {
  readonly other: string;
};

/** Texts by key. `{name}` in a text is filled in. */
export type Catalog = Readonly<Record<string, string | PluralForms>>;

/** What a translation of a catalog must contain. */
export type TranslationOf<C extends Catalog> = {
  readonly [Key in keyof C]: C[Key] extends string ? string : PluralForms;
};

type Placeholders<Text> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never;
type ParametersOf<M> = M extends string ? Placeholders<M> : 'count' | Placeholders<M[keyof M]>;

type Values<M, Value> =
  ParametersOf<M> extends never
    ? []
    : [values: { readonly [Name in ParametersOf<M>]: Name extends 'count' ? number : Value }];

/** Returns texts of a catalog. Numbers are written as the language does. */
export interface Translate<C extends Catalog> {
  <Key extends keyof C>(key: Key, ...values: Values<C[Key], string | number>): string;
  /** The same with elements, such as links, in places of the text. */
  nodes<Key extends keyof C>(key: Key, ...values: Values<C[Key], ComponentChild>): ComponentChild[];
}

const placeholder = /\{(\w+)\}/;

export function createTranslate<C extends Catalog>(catalog: C, language: Language): Translate<C> {
  const plurals = new Intl.PluralRules(language);
  const numbers = new Intl.NumberFormat(language);
  const chooseText = (key: keyof C, values: Readonly<Record<string, unknown>>): string => {
    const message = catalog[key];
    if (typeof message === 'string') return message;
    if (message === undefined) return String(key);
    return message[plurals.select(Number(values['count']))] ?? message.other;
  };
  const fill = <Value>(key: keyof C, values: Readonly<Record<string, Value>>): (string | Value)[] =>
    chooseText(key, values)
      .split(placeholder)
      .map((part, i) => {
        if (i % 2 === 0) return part;
        const value = values[part]!;
        return typeof value === 'number' ? numbers.format(value) : value;
      });
  const nodes = (key: keyof C, values: Readonly<Record<string, ComponentChild>> = {}): ComponentChild[] =>
    fill(key, values);
  const translate = (key: keyof C, values: Readonly<Record<string, string | number>> = {}): string =>
    fill(key, values).join('');
  return Object.assign(translate, { nodes }) as Translate<C>;
}
