import type { Operation } from '../../shared/contract/operation.ts';
import { tags } from '../../shared/contract/operation.ts';
import { apiVersion } from '../../shared/contract/system.ts';
import { describeOperation, fullPathOf, listSecurity, securitySchemes } from './describe-operation.ts';
import type { Description, OperationObject } from './description.ts';
import { responseHeaders } from './headers.ts';
import { overview, tagDescriptions } from './overview.ts';
import { SchemaComponents } from './schema-components.ts';

/**
 * Builds the OpenAPI 3.1 document of these operations. Pure.
 * @param serverUrl the server's public address, without the version segment and without a trailing slash
 */
export function buildDescription(operations: readonly Operation[], serverUrl: string): Description {
  const components = new SchemaComponents();
  const paths: Record<string, Record<string, OperationObject>> = {};
  const ordered = tags.flatMap((tag) => operations.filter((operation) => operation.tag === tag));
  for (const operation of ordered) {
    const item = (paths[fullPathOf(operation)] ??= {});
    item[operation.method] = describeOperation(operation, components);
  }
  const used = new Set(
    ordered
      .flatMap(listSecurity)
      .flat()
      .map((one) => securitySchemes[one].name),
  );
  const schemes = Object.values(securitySchemes).filter(({ name }) => used.has(name));
  return {
    openapi: '3.1.1',
    info: {
      title: 'Model Gateway',
      version: apiVersion,
      description: overview,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: serverUrl }],
    tags: tags
      .filter((tag) => ordered.some((operation) => operation.tag === tag))
      .map((name) => ({ name, description: tagDescriptions[name] })),
    paths,
    components: {
      schemas: components.all(),
      headers: responseHeaders,
      securitySchemes: Object.fromEntries(schemes.map(({ name, scheme }) => [name, scheme])),
    },
  };
}
