import type { lateDefault, lateItems, lengthHint, wrongTypeHint } from '../../shared/contract/fields.ts';
import type { Tag } from '../../shared/contract/operation.ts';

/** An OpenAPI document: the parts of OpenAPI 3.1 that ours uses (OpenAPI Specification 3.1.1). */
export interface Description {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: Tag; readonly description: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly headers: Readonly<Record<string, HeaderObject>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

export type PathItem = Readonly<Record<string, OperationObject>>;

export interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly Tag[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly ParameterObject[];
  readonly requestBody?: {
    readonly required: true;
    readonly description: string;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  /** By status. */
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

export interface ParameterObject {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: string | number;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers: Readonly<Record<string, Reference>>;
  readonly content: Readonly<Record<string, MediaType>>;
}

export interface HeaderObject {
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface MediaType {
  readonly schema: JsonSchema;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;
}

export interface Reference {
  readonly $ref: string;
}

/** A schema of JSON Schema 2020-12, with the keywords that the contract uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly title?: string;
  readonly description?: string;
  /** A list of types is used only in the contract. */
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly examples?: readonly unknown[];
  readonly contentMediaType?: string;
  readonly contentSchema?: JsonSchema;
  /** Used only in the contract. */
  readonly [wrongTypeHint]?: string;
  readonly [lengthHint]?: string;
  readonly [lateItems]?: JsonSchema;
  readonly [lateDefault]?: unknown;
}
