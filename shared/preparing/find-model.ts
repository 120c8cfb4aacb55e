import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import { invalidField } from '../contract/errors.ts';
import { isOneEditApart } from './one-edit-apart.ts';
import { modelDisabled, modelNotFound } from '../contract/model-errors.ts';
import { writeReason } from '../contract/reason-texts.ts';
import type { ModelType } from '../contract/models.ts';

/**
 * Finds the requested model by its id or alternative id.
 * @throws AppError `model_not_found`; `validation_failed` if it is of another type; `model_disabled`
 */
export function findModel(
  catalog: Pick<CatalogStore, 'current' | 'find' | 'isActive'>,
  id: string,
  types: readonly ModelType[],
): CatalogModel {
  const model = catalog.find(id);
  if (model === undefined) {
    const names = catalog.current.models.flatMap((one) => [one.id, ...one.aliases]);
    throw modelNotFound(
      id,
      ['body', 'model'],
      names.find((name) => isOneEditApart(id, name)),
    );
  }
  if (!types.includes(model.type)) {
    const { en, ru } = writeReason('wrongModelType', {
      model: id,
      type: model.type,
      types: types.join(' or '),
    });
    throw invalidField(['body', 'model'], en, { msgRu: ru });
  }
  if (!catalog.isActive(model)) throw modelDisabled(id);
  return model;
}
