import { operations } from '../../contract/operations.ts';

const ofOperations = Object.values(operations).map(({ method }) => method.toUpperCase());

/** The methods that at least one path accepts. */
export const servedMethods: readonly string[] = [...new Set([...ofOperations, 'HEAD', 'OPTIONS'])].toSorted();
