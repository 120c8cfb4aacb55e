import { modelNotFound } from '../../../shared/contract/model-errors.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBodies, PreparedBody } from '../../http/responses/prepared-body.ts';
import { sendPrepared } from '../../responses/send-prepared.ts';
import type { Model } from '../../../shared/contract/models.ts';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';

/** Caches must revalidate, so that a disabled model is visible as such within a second. */
const cacheControl = 'public, no-cache';

export const listModels = defineEndpoint(operations.listModels, [beginInTurns], ({ catalog }) => {
  const bodies = new PreparedBodies();
  return async (context) => {
    const { type, active } = context.state.query;
    const body = bodies.get(catalog.state, `${type ?? ''} ${active ?? ''}`, () => {
      const models = catalog.current.models.filter(
        (model) =>
          (type === undefined || model.type === type) && (active === 'all' || model.routes.length > 0),
      );
      return PreparedBody.ofJson({
        object: 'list',
        data: models.map((model) => presentModel(model, catalog.isActive(model))),
      });
    });
    await sendPrepared(context, body, cacheControl);
  };
});

/** Ids contain slashes, percent-encoded or not, so the whole remainder of the path is the id. */
export const getModel = defineEndpoint(operations.getModel, [beginInTurns], ({ catalog }) => {
  const bodies = new PreparedBodies();
  return async (context) => {
    const id = decodeId(context.path.slice('/v1/models/'.length).replace(/\/$/, ''));
    const model = id === null ? undefined : catalog.find(id);
    if (model === undefined) throw modelNotFound(id ?? context.path.slice('/v1/models/'.length));
    const body = bodies.get(catalog.state, model.id, () =>
      PreparedBody.ofJson(presentModel(model, catalog.isActive(model))),
    );
    await sendPrepared(context, body, cacheControl);
  };
});

/** Converts a model to its public form. */
export function presentModel(model: CatalogModel, active: boolean): Model {
  return { ...model.published, active };
}

function decodeId(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    // The escapes are invalid, and no model id contains a `%`.
    return null;
  }
}
