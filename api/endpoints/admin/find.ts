import { addAccountNames } from '../../../shared/admin/account-names.ts';
import { findAnything as findInStores, hasKey } from '../../../shared/admin/find-anything.ts';
import { operations } from '../../contract/operations.ts';
import { readFromDatabase } from '../../http/request/read-turns.ts';
import { defineAdminEndpoint } from './define-admin-endpoint.ts';
import { findInCatalog } from './find-in-catalog.ts';

export const findAnything = defineAdminEndpoint(
  operations.findAnything,
  (services) => (context) =>
    readFromDatabase(services, context, 'list', async () => {
      const { text } = context.state.body;
      const found = [
        ...(await findInStores(services, text)),
        ...findInCatalog(services.catalog.current, text),
      ];
      return {
        data: await addAccountNames(services, found, ({ account }) => account),
        is_unknown_key: found.length === 0 && hasKey(text),
      };
    }),
);
