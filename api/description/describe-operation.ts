import { STATUS_CODES } from 'node:http';
import type { TSchema } from 'typebox';
import {
  acceptsSession,
  accountHeader,
  changesAsOperator,
  defaultBodyLimitBytes,
  hasUnsafeMethod,
  needsCsrfToken,
  type AdditionalResponse,
  type Operation,
  type OperationExample,
} from '../../shared/contract/operation.ts';
import type {
  JsonSchema,
  MediaType,
  OperationObject,
  ParameterObject,
  ResponseObject,
} from './description.ts';
import { describeErrors } from './error-responses.ts';
import { headersOf, requestHeaders } from './headers.ts';
import type { SchemaComponents } from './schema-components.ts';

export const securitySchemes = {
  key: {
    name: 'apiKey',
    scheme: {
      type: 'http',
      scheme: 'bearer',
      description: 'An API key, sent as `Authorization: Bearer <API_KEY>`.',
    },
  },
  metrics: {
    name: 'metricsToken',
    scheme: {
      type: 'http',
      scheme: 'bearer',
      description: 'The operator’s `METRICS_TOKEN`, sent as `Authorization: Bearer <METRICS_TOKEN>`.',
    },
  },
  web: {
    name: 'webSession',
    scheme: {
      type: 'apiKey',
      in: 'cookie',
      name: 'mg_session',
      description:
        'A session of the account area, set by `/web/auth/verify-code`. If the service is accessed over https, the cookie is ' +
        'named `__Host-mg_session`.',
    },
  },
  account: {
    name: 'apiAccount',
    scheme: {
      type: 'apiKey',
      in: 'header',
      name: accountHeader,
      description:
        'The `id` of the account that a session acts for, as `GET /v1/web/api-accounts` lists it. It is ignored if the ' +
        'request has an API key.',
    },
  },
  admin: {
    name: 'adminToken',
    scheme: {
      type: 'http',
      scheme: 'bearer',
      description:
        'The operator’s `ADMIN_TOKEN`, or a token that `admin token create` or `POST /v1/admin/tokens` made, sent as ' +
        '`Authorization: Bearer <token>`.',
    },
  },
  adminSession: {
    name: 'adminSession',
    scheme: {
      type: 'apiKey',
      in: 'cookie',
      name: 'mg_admin',
      description:
        'A session that `POST /v1/admin/session` started. If the service is accessed over https, the cookie is named ' +
        '`__Host-mg_admin`.',
    },
  },
  refresh: {
    name: 'webRefresh',
    scheme: {
      type: 'apiKey',
      in: 'cookie',
      name: 'mg_refresh',
      description:
        'The refresh token of a session. If the service is accessed over https, the cookie is named `__Host-mg_refresh`.',
    },
  },
  csrf: {
    name: 'csrfToken',
    scheme: {
      type: 'apiKey',
      in: 'header',
      name: 'X-CSRF-Token',
      description:
        'The `csrf_token` of the session, which a sign-in, a refresh and `GET /v1/web/auth/me` return, or of the admin session.',
    },
  },
} as const;

type SchemeName = keyof typeof securitySchemes;

/** Lists the security schemes that a call must satisfy, in one or more alternatives. */
export function listSecurity(operation: Operation): SchemeName[][] {
  const { auth, acceptsRefreshCookie } = operation;
  switch (auth) {
    case 'none':
      return [];
    case 'key':
      if (!acceptsSession(operation)) return [['key']];
      return [['key'], hasUnsafeMethod(operation) ? ['web', 'account', 'csrf'] : ['web', 'account']];
    case 'admin':
      return [['admin'], changesAsOperator(operation) ? ['adminSession', 'csrf'] : ['adminSession']];
    default: {
      const usual: SchemeName[] = needsCsrfToken(operation) ? [auth, 'csrf'] : [auth];
      return acceptsRefreshCookie === true ? [usual, ['refresh']] : [usual];
    }
  }
}

const json = 'application/json';
const form = 'multipart/form-data';

/** The operation's full path below the server's address. */
export function fullPathOf({ path, atRoot }: Operation): string {
  return atRoot === true ? path : `/v1${path}`;
}

export function describeOperation(operation: Operation, components: SchemaComponents): OperationObject {
  const { operationId, tag, summary, description } = operation;
  const parameters = describeParameters(operation, components);
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: describeSecurity(operation),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...describeBody(operation, components),
    responses: {
      ...describeSuccess(operation, components),
      ...describeUnchanged(operation),
      ...describeErrors(operation, components),
    },
  };
}

const describeSecurity = (operation: Operation): Record<string, string[]>[] =>
  listSecurity(operation).map((names) =>
    Object.fromEntries(names.map((name) => [securitySchemes[name].name, []])),
  );

function describeParameters(operation: Operation, components: SchemaComponents): ParameterObject[] {
  const { path, pathParameters, query, example } = operation;
  const toParameter = (
    name: string,
    location: 'path' | 'query',
    from: TSchema | undefined,
    value: string | number | undefined,
  ): ParameterObject => {
    const { properties = {}, required = [] } = (from ?? {}) as JsonSchema;
    const { description, ...schema } = components.rewrite(properties[name] ?? { type: 'string' }, 'request');
    return {
      name,
      in: location,
      required: location === 'path' || (required.includes(name) && schema.default === undefined),
      ...(description === undefined ? {} : { description }),
      schema,
      ...(value === undefined ? {} : { example: value }),
    };
  };
  const pathNames = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const queryNames = Object.keys(propertiesOf(query));
  return [
    ...pathNames.map((name) => toParameter(name, 'path', pathParameters, example?.path?.[name])),
    ...queryNames.map((name) => toParameter(name, 'query', query, example?.query?.[name])),
    ...requestHeaders(operation),
  ];
}

function describeBody(
  { body, formBody, bodyLimitBytes = defaultBodyLimitBytes, example, additionalResponses = [] }: Operation,
  components: SchemaComponents,
): Pick<OperationObject, 'requestBody'> {
  if (body === undefined) return describeForm(formBody, example, components);
  const examples = Object.fromEntries(
    [
      ['usual', example] as const,
      ...additionalResponses.map((response) => [exampleNameOf(response), response.example] as const),
    ].flatMap(([name, one]) => (one?.body === undefined ? [] : [[name, { value: one.body }]])),
  );
  const content = { schema: components.rewrite(body, 'request'), examples };
  const forms = formBody === undefined ? ',' : ', or a form with files,';
  return {
    requestBody: {
      required: true,
      description: `JSON in UTF-8${forms} at most ${formatSize(bodyLimitBytes)}.`,
      // openapi-generator writes only the first, and with the form its clients can send files. With JSON first, its Java
      // clients would import a class of the form that it does not write.
      content: {
        ...(formBody === undefined ? {} : { [form]: { schema: components.rewrite(formBody, 'request') } }),
        [json]: content,
      },
    },
  };
}

/** Describes the body of an operation that takes only a form. */
function describeForm(
  formBody: TSchema | undefined,
  example: OperationExample | undefined,
  components: SchemaComponents,
): Pick<OperationObject, 'requestBody'> {
  if (formBody === undefined) return {};
  return {
    requestBody: {
      required: true,
      description: 'A form with a file.',
      content: {
        [form]: {
          schema: components.rewrite(formBody, 'request'),
          ...(example?.form === undefined ? {} : { examples: { usual: { value: example.form } } }),
        },
      },
    },
  };
}

const propertiesOf = (schema: JsonSchema | undefined): object => schema?.properties ?? {};

const formatSize = (bytes: number): string =>
  bytes >= 1_000_000 ? `${bytes / 1_000_000} MB` : `${bytes / 1_000} KB`;

/** Returns the name of this response's example among the operation's examples. */
const exampleNameOf = ({ name, responseType, status }: AdditionalResponse): string =>
  name ?? responseType?.split('/')[1] ?? `status-${status}`;

/** Describes the default response and the additional ones, grouped by status. */
function describeSuccess(operation: Operation, components: SchemaComponents): Record<string, ResponseObject> {
  const defaultResponse: AdditionalResponse = {
    status: operation.status ?? 200,
    response: operation.response,
    description: '',
    example: operation.example ?? {},
    ...(operation.responseType === undefined ? {} : { responseType: operation.responseType }),
  };
  const responses = [defaultResponse, ...(operation.additionalResponses ?? [])];
  const statuses = [...new Set(responses.map((response) => response.status))];
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = responses.filter((response) => response.status === status);
      const texts = ofStatus.map((response) => response.description).filter((text) => text !== '');
      return [
        String(status),
        {
          description: texts.length > 0 ? texts.join('\n\n') : `${STATUS_CODES[status] ?? 'Success'}.`,
          headers: headersOf(operation, status),
          content: status === 204 ? {} : describeContent(ofStatus, components),
        },
      ];
    }),
  );
}

function describeUnchanged(operation: Operation): Record<string, ResponseObject> {
  if (operation.hasETag !== true && operation.servesRanges !== true) return {};
  const description =
    operation.servesRanges === true
      ? 'The file has not changed, according to `If-None-Match` or `If-Modified-Since`.'
      : 'The response has not changed: its `ETag` matches `If-None-Match`.';
  return { '304': { description, headers: headersOf(operation, 304), content: {} } };
}

/** Responses of one type are alternatives. */
function describeContent(
  responses: readonly AdditionalResponse[],
  components: SchemaComponents,
): Record<string, MediaType> {
  const types = [...new Set(responses.map(({ responseType = json }) => responseType))];
  return Object.fromEntries(
    types.map((type) => {
      const ofType = responses.filter(({ responseType = json }) => responseType === type);
      const schemas = ofType.map(({ response }) => components.rewrite(response, 'response'));
      const examples = ofType.flatMap((response, i) =>
        response.example.response === undefined
          ? []
          : [[i === 0 ? 'usual' : exampleNameOf(response), { value: response.example.response }] as const],
      );
      const schema = schemas.length === 1 ? schemas[0]! : { anyOf: schemas };
      return [type, { schema: toMediaSchema(type, schema), examples: Object.fromEntries(examples) }];
    }),
  );
}

/** An event stream is a string. The schema describes the data of its events. */
function toMediaSchema(responseType: string, schema: JsonSchema): JsonSchema {
  if (responseType !== 'text/event-stream') return schema;
  return { type: 'string', contentMediaType: responseType, contentSchema: schema };
}
