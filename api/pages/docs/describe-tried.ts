import type { TriedOperation } from '../docs-data.ts';
import { codesOf } from './render-errors.ts';
import type { Entry } from './render-operation.ts';

const json = 'application/json';

/**
 * Describes an operation for the page to send. Null if it cannot: it sends with a session, without files, and without
 * changing what belongs to the user, such as sessions, for which there are pages.
 */
export function describeTried({ method, path, operation }: Entry): TriedOperation | null {
  const { security, summary, parameters = [], requestBody, responses } = operation;
  const schemes = security.flatMap((requirement) => Object.keys(requirement));
  const isForSession = schemes.includes('apiAccount') || (schemes.includes('webSession') && method === 'get');
  const isPublic = schemes.length === 0 && method === 'get' && path.startsWith('/v1/');
  if (!isForSession && !isPublic) return null;
  if (requestBody !== undefined && !(json in requestBody.content)) return null;
  return {
    title: summary,
    method: method.toUpperCase(),
    path,
    parameters: parameters.flatMap(({ name, in: location, required, example = '' }) =>
      location === 'header' ? [] : [{ name, in: location, isRequired: required, example: String(example) }],
    ),
    bodies: Object.values(requestBody?.content[json]?.examples ?? {}).map(({ value }) => value),
    needsSession: isForSession,
    isPaid: Object.values(responses).some((response) => codesOf(response).includes('insufficient_balance')),
  };
}
