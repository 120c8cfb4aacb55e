import { dryRunRevokeToken } from '../../shared/admin/dry-run-access.ts';
import { createToken, findToken, listTokens, revokeToken } from '../../shared/admin/tokens.ts';
import { adminScopes, type AdminScope } from '../../shared/contract/admin-terms.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import { CommandError, UsageError, type AdminVerb, type ChangeContext } from './command.ts';

export const tokenVerbs: Record<string, AdminVerb> = {
  create: {
    usage: '<name> --scope read',
    help: 'creates a token of the admin API, and prints it; it cannot be shown again. The scope is read, billing or all',
    positionals: 1,
    options: ['scope'],
    isChange: true,
    run: create,
  },
  list: {
    usage: '',
    help: 'lists all tokens of the admin API, without their secrets',
    positionals: 0,
    options: [],
    run: listTokens,
  },
  revoke: {
    usage: '<name> [--dry-run]',
    help: 'ends a token and its sessions within a second; its name cannot be used again; --dry-run only counts the sessions',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: revoke,
  },
};

function readScope(given = ''): AdminScope {
  const scope = adminScopes.find((known) => known === given);
  if (scope === undefined) throw new UsageError(`--scope must be one of ${adminScopes.join(', ')}.`);
  return scope;
}

const noSuchToken = (name: string): CommandError =>
  new CommandError(`There is no token ${quote(name)}. "token list" lists all tokens.`);

async function create(context: ChangeContext): Promise<unknown> {
  const scope = readScope(context.options['scope']);
  return await createToken(context, context.trail, { name: context.positionals[0]!, scope });
}

async function revoke(context: ChangeContext): Promise<unknown> {
  const name = context.positionals[0]!;
  if (context.flags.has('dry-run')) {
    const token = await findToken(context, name);
    if (token === null) throw noSuchToken(name);
    return await dryRunRevokeToken(context, token);
  }
  const revoked = await revokeToken(context, context.trail, name);
  if (revoked === null) throw noSuchToken(name);
  return revoked;
}
