import { addAccountNames } from '../../../shared/admin/account-names.ts';
import { findAnything as findInStores } from '../../../shared/admin/find-anything.ts';
import { operations } from '../../contract/operations.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import { defineAdminEndpoint } from './define-admin-endpoint.ts';

export const findAnything = defineAdminEndpoint(
  operations.findAnything,
  (services) => (context) =>
    readFromDatabase(services, context, 'list', async () => ({
      data: await addAccountNames(
        services,
        await findInStores(services, context.state.body.text),
        ({ account }) => account,
      ),
    })),
);
